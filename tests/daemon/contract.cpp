// SPDX-License-Identifier: Apache-2.0
#include "tests/daemon/contract.hpp"

#include "schema/embedded_file.hpp"

#include <boost/json.hpp>

#include <algorithm>
#include <sstream>
#include <stdexcept>

namespace modeld::test {
namespace {

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

bool has_type(const boost::json::value& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "integer") return value.is_int64() || value.is_uint64();
  if (type == "boolean") return value.is_bool();
  return false;
}

} // namespace

Contract::Contract() {
  for (const EmbeddedFile& file : contracts::files()) {
    if (file.name == "openapi.yaml") root_ = YAML::Load(std::string(file.text));
  }
  if (!root_["paths"]) throw std::runtime_error("the contract is not embedded");
}

std::set<std::string> Contract::routes() const {
  std::set<std::string> out;
  for (const auto& path : root_["paths"]) {
    for (const auto& method : path.second) {
      const auto name = method.first.as<std::string>();
      if (name != "parameters") out.insert(upper(name) + " " + path.first.as<std::string>());
    }
  }
  return out;
}

YAML::Node Contract::resolve(YAML::Node node) const {
  while (node["$ref"]) {
    std::istringstream parts(node["$ref"].as<std::string>().substr(2)); // behind "#/"
    YAML::Node at = root_; // a handle: reset() moves it, and leaves the tree as it is
    for (std::string part; std::getline(parts, part, '/');) {
      at.reset(at[part]);
    }
    node.reset(at);
  }
  return node;
}

std::vector<std::string> Contract::check_answer(const std::string& method, const std::string& path,
                                                int status, const std::string& content_type,
                                                const std::string& body) const {
  std::string lower = method;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  YAML::Node responses = root_["paths"][path][lower]["responses"];
  if (!responses) return {method + " " + path + " is not in the contract"};
  YAML::Node response = responses[std::to_string(status)];
  if (!response) response.reset(status >= 400 ? responses["default"] : YAML::Node());
  if (!response || response.IsNull()) {
    return {method + " " + path + " must not answer " + std::to_string(status)};
  }
  const YAML::Node content = resolve(response)["content"];
  const std::string type = content_type.substr(0, content_type.find(';'));
  if (!content[type]) return {path + " must not answer with " + content_type};
  std::vector<std::string> wrong;
  if (type.ends_with("json")) {
    check(content[type]["schema"], boost::json::parse(body), path, wrong);
  }
  return wrong;
}

std::vector<std::string> Contract::check(const std::string& schema,
                                         const boost::json::value& value) const {
  std::vector<std::string> wrong;
  check(root_["components"]["schemas"][schema], value, schema, wrong);
  return wrong;
}

void Contract::check(YAML::Node schema, const boost::json::value& value, const std::string& where,
                     std::vector<std::string>& wrong) const {
  const YAML::Node node = resolve(schema);
  const auto type = node["type"].as<std::string>();
  if (!has_type(value, type)) {
    wrong.push_back(where + " is no " + type);
    return;
  }
  if (node["enum"]) {
    const bool known = std::any_of(node["enum"].begin(), node["enum"].end(), [&](const auto& one) {
      return one.template as<std::string>() == value.as_string();
    });
    if (!known) wrong.push_back(where + " is '" + std::string(value.as_string()) + "'");
  }
  if (type == "object") check_object(node, value, where, wrong);
  if (type == "array") {
    for (const auto& item : value.as_array()) {
      check(node["items"], item, where + "[]", wrong);
    }
  }
}

void Contract::check_object(const YAML::Node& schema, const boost::json::value& value,
                            const std::string& where, std::vector<std::string>& wrong) const {
  const auto& object = value.as_object();
  if (schema["required"]) {
    for (const auto& name : schema["required"]) {
      if (!object.contains(name.as<std::string>())) {
        wrong.push_back(where + " lacks " + name.as<std::string>());
      }
    }
  }
  if (!schema["properties"]) return; // an open object
  for (const auto& [key, member] : object) {
    const std::string name(key);
    if (schema["properties"][name]) {
      check(schema["properties"][name], member, where + "." + name, wrong);
    } else {
      wrong.push_back(where + " has " + name + ", which the contract does not name");
    }
  }
}

} // namespace modeld::test
