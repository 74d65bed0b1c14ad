// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"

#include <boost/json/value.hpp>

#include <string>
#include <string_view>

namespace modeld::quantize {

/// What a plain (unquoted) scalar means in YAML 1.1: null, a boolean, a whole number, a number, a
/// date ({"timestamp": text}) or text. Whole numbers beyond 64 bits become the largest.
boost::json::value resolve_plain_scalar(const std::string& text);

} // namespace modeld::quantize
