// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/convert/config.hpp"
#include "schema/file_set.hpp"

#include <boost/json/object.hpp>

#include <string_view>

// What a repository's small files say beside config.json.

namespace modeld::quantize {

/// A JSON object as Python reads it; malformed where the file is none.
Result<boost::json::object> read_json_file(const FileSet& files, std::string_view path);

/// Fills config.facts (see ModelConfig).
Result<void> collect_facts(const FileSet& files, ModelConfig& config);

/// Numbers of added tokens by text: tokenizer_config.json's word goes before tokenizer.json's.
boost::json::object added_tokens(const boost::json::object& facts, const FileSet& files);

/// Numbers of the special tokens that tekken.json lists, by text.
boost::json::object tekken_special(const FileSet& files);

/// preprocessor_config.json, and processor_config.json over it; both may have the part that matters
/// in a member.
Result<boost::json::object> read_processor(const FileSet& files);

/// A member that is an object; null otherwise.
const boost::json::object* member_object(const boost::json::object& object, std::string_view name);

} // namespace modeld::quantize
