// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/json/object.hpp>

#include <string>

namespace modeld::daemon {

/// JSON text in which characters that act on a terminal or on the eye (bidirectional controls,
/// C1, invisible formatting) are written as \uXXXX: the same values, fit to be looked at. Bytes
/// that are no UTF-8, which JSON cannot hold, become the text "\xHH".
std::string safe_json(const boost::json::object& object);

} // namespace modeld::daemon
