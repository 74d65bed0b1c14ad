// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json/value.hpp>
#include <yaml-cpp/yaml.h>

#include <set>
#include <string>
#include <vector>

namespace modeld::test {

/// schema/openapi.yaml, and what it says about answers.
class Contract {
public:
  Contract();

  /// "GET /v1/jobs/{id}", every method of every path.
  std::set<std::string> routes() const;
  /// What is wrong with an answer; empty where nothing is. Stricter than JSON Schema: a member that
  /// the contract does not name is wrong.
  std::vector<std::string> check_answer(const std::string& method, const std::string& path,
                                        int status, const std::string& content_type,
                                        const std::string& body) const;
  std::vector<std::string> check(const std::string& schema, const boost::json::value& value) const;

private:
  YAML::Node resolve(YAML::Node node) const;
  void check(YAML::Node schema, const boost::json::value& value, const std::string& where,
             std::vector<std::string>& wrong) const;
  void check_object(const YAML::Node& schema, const boost::json::value& value,
                    const std::string& where, std::vector<std::string>& wrong) const;

  YAML::Node root_;
};

} // namespace modeld::test
