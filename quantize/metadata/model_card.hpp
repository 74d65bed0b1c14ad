// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/file_set.hpp"
#include "schema/result.hpp"

#include <boost/json/object.hpp>

#include <string_view>

namespace modeld::quantize {

/// The front matter of README.md as the reference sees it: YAML 1.1 with its scalars typed, so
/// `version: 1.0` is a number and `language: no` is false. Empty where there is no card, no front
/// matter, or front matter that is not a mapping. A date becomes {"timestamp": text}: neither text
/// nor a list, and no key that anyone reads.
///
/// malformed: YAML that the reference fails on, text that is not UTF-8; the message says where.
Result<boost::json::object> read_model_card(const FileSet& files);

/// The same for a front matter alone.
Result<boost::json::object> parse_front_matter(std::string_view yaml);

} // namespace modeld::quantize
