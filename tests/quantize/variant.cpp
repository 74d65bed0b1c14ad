// SPDX-License-Identifier: Apache-2.0
#include "tests/quantize/variant.hpp"

#include "quantize/architecture/pattern.hpp"
#include "tests/quantize/golden_snapshot.hpp"
#include "tests/quantize/golden_weights.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace json = boost::json;
namespace fs = std::filesystem;

namespace modeld::test {
namespace {

using Tensors = std::vector<GoldenTensor>;

std::string text_at(const json::value& list, std::size_t i) {
  return std::string(list.as_array().at(i).as_string());
}

json::object read_object(const MemoryFiles& files, const std::string& path) {
  const auto bytes = files.bytes(path);
  if (!bytes) return {};
  return json::parse({reinterpret_cast<const char*>(bytes->data()), bytes->size()}).as_object();
}

/// The object that holds a path's last part, made on the way; and that part.
std::pair<json::object*, std::string> place(json::object& root, std::string path) {
  json::object* at = &root;
  for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/')) {
    json::value& next = (*at)[path.substr(0, slash)];
    if (!next.is_object()) next = json::object();
    at = &next.get_object();
    path.erase(0, slash + 1);
  }
  return {at, path};
}

void edit_files(const json::object& variant, MemoryFiles& files) {
  const auto change = [&files](const json::value& edit, const json::value* to) {
    json::object root = read_object(files, text_at(edit, 0));
    const auto [object, name] = place(root, text_at(edit, 1));
    if (to == nullptr) {
      object->erase(name);
    } else {
      (*object)[name] = *to;
    }
    files.put(text_at(edit, 0), json::serialize(root));
  };
  if (const json::value* all = variant.if_contains("edit")) {
    for (const json::value& edit : all->as_array()) {
      change(edit, &edit.as_array().at(2));
    }
  }
  if (const json::value* all = variant.if_contains("unset")) {
    for (const json::value& edit : all->as_array()) {
      change(edit, nullptr);
    }
  }
  if (const json::value* all = variant.if_contains("write")) {
    for (const auto& file : all->as_object()) {
      files.put(std::string(file.key()), std::string(file.value().as_string()));
    }
  }
  if (const json::value* all = variant.if_contains("remove")) {
    for (const json::value& file : all->as_array()) {
      files.remove(std::string(file.as_string()));
    }
  }
}

bool is_weights(const std::string& path) {
  return path.starts_with("model") && path.find('/') == std::string::npos &&
         (path.ends_with(".safetensors") || path.ends_with(".safetensors.index.json"));
}

Tensors all_tensors(const fs::path& case_folder) {
  Tensors out;
  const json::value weights = json::parse(read_file(case_folder / "weights.json"));
  for (const json::value& value : weights.as_array()) {
    const json::object& file = value.as_object();
    if (!is_weights(std::string(file.at("file").as_string()))) continue;
    for (GoldenTensor& tensor : tensors_of(file)) {
      out.push_back(std::move(tensor));
    }
  }
  return out;
}

std::vector<std::uint64_t> shape_of(const json::value& shape) {
  return json::value_to<std::vector<std::uint64_t>>(shape);
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size()) {
    text.replace(at, what.size(), with);
  }
  return text;
}

quantize::NamePattern glob(const json::value& text) {
  return quantize::NamePattern::parse(std::string(text.as_string())).value();
}

void set_tensors(const json::object& change, Tensors& tensors) {
  const auto pattern = glob(change.at("set"));
  std::size_t hits = 0;
  for (GoldenTensor& tensor : tensors) {
    if (!pattern.match(tensor.name)) continue;
    ++hits;
    tensor.kept.reset();
    if (const auto* dtype = change.if_contains("dtype")) tensor.dtype = dtype->as_string();
    if (const auto* shape = change.if_contains("shape")) tensor.shape = shape_of(*shape);
  }
  if (hits == 0) throw std::runtime_error("no tensor is like " + pattern.text());
}

void copy_tensors(const json::object& change, Tensors& tensors) {
  const std::string what(change.at("copy").as_string());
  const std::string to(change.at("to").as_string());
  Tensors more;
  for (const GoldenTensor& tensor : tensors) {
    if (tensor.name.find(what) == std::string::npos) continue;
    more.push_back(tensor);
    more.back().name = replaced(tensor.name, what, to);
  }
  tensors.insert(tensors.end(), more.begin(), more.end());
}

void change_tensors(const json::object& change, Tensors& tensors) {
  if (const json::value* drop = change.if_contains("drop")) {
    const auto pattern = glob(*drop);
    std::erase_if(tensors, [&](const auto& t) { return pattern.match(t.name).has_value(); });
  } else if (const json::value* add = change.if_contains("add")) {
    tensors.push_back({std::string(add->as_string()),
                       std::string(change.at("dtype").as_string()),
                       shape_of(change.at("shape")),
                       {}});
  } else if (change.contains("set")) {
    set_tensors(change, tensors);
  } else if (change.contains("copy")) {
    copy_tensors(change, tensors);
  } else {
    for (GoldenTensor& tensor : tensors) {
      tensor.name = replaced(tensor.name, std::string(change.at("replace").as_string()),
                             std::string(change.at("with").as_string()));
    }
  }
}

void put_weights(const Tensors& tensors, std::size_t shards, MemoryFiles& files) {
  std::vector<std::string> old;
  for (const FileSet::Entry& entry : files.entries()) {
    if (is_weights(entry.path)) old.push_back(entry.path);
  }
  for (const std::string& path : old) {
    files.remove(path);
  }
  json::object map;
  for (std::size_t i = 0; i < shards; ++i) {
    const std::string name = shards == 1
                                 ? std::string("model.safetensors")
                                 : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards);
    const auto at = [&](std::size_t n) {
      return tensors.begin() + static_cast<std::ptrdiff_t>(tensors.size() * n / shards);
    };
    const Tensors part(at(i), at(i + 1));
    for (const GoldenTensor& tensor : part) {
      map[tensor.name] = name;
    }
    files.put(name, safetensors_file(part));
  }
  if (shards > 1) {
    files.put("model.safetensors.index.json",
              json::serialize(json::object{{"metadata", json::object()}, {"weight_map", map}}));
  }
}

} // namespace

MemoryFiles variant_snapshot(const fs::path& case_folder, const std::string& model_dir,
                             const json::object& variant) {
  MemoryFiles files = golden_snapshot(case_folder, model_dir);
  edit_files(variant, files);
  if (const json::value* name = variant.if_contains("dir")) {
    files.rename(std::string(name->as_string()));
  }
  const json::value* changes = variant.if_contains("tensors");
  const json::value* shards = variant.if_contains("shards");
  if (changes == nullptr && shards == nullptr) return files;
  Tensors tensors = all_tensors(case_folder);
  if (changes != nullptr) {
    for (const json::value& change : changes->as_array()) {
      change_tensors(change.as_object(), tensors);
    }
  }
  std::sort(tensors.begin(), tensors.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  put_weights(tensors, shards == nullptr ? 1 : shards->to_number<std::size_t>(), files);
  return files;
}

} // namespace modeld::test
