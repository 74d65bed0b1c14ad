// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/file_set.hpp"
#include "schema/result.hpp"

#include <boost/json/object.hpp>

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace modeld::quantize {

/// A repository's tokenizer files, each parsed once. One thread at a time.
class TokenizerFiles {
public:
  /// Keeps a reference.
  explicit TokenizerFiles(const FileSet& files) : files_(files) {}

  const FileSet& set() const { return files_; }
  bool has(std::string_view path) const { return files_.contains(path); }

  /// The root object of a JSON file; null where there is no such file. Valid as long as *this.
  /// malformed: not JSON, or the root is no object.
  Result<const boost::json::object*> object(std::string_view path);
  /// As text mode reads it: UTF-8, and every line end is "\n". malformed where it is not UTF-8.
  Result<std::string> text(std::string_view path) const;
  Result<std::string_view> raw(std::string_view path) const;

private:
  const FileSet& files_;
  std::map<std::string, std::optional<boost::json::value>, std::less<>> parsed_;
};

/// A member of an object, or null: absent and JSON null are the same here.
const boost::json::value* member(const boost::json::object& object, std::string_view name);
/// A string member's text; nothing where it is absent or of another type.
std::optional<std::string_view> text_member(const boost::json::object& object,
                                            std::string_view name);
/// Whether a value counts as true where the reference only asks `if value`.
bool is_truthy(const boost::json::value* value);
/// A whole number; nothing for anything else. Booleans are numbers there (false 0, true 1).
std::optional<std::int64_t> whole_number(const boost::json::value* value);

} // namespace modeld::quantize
