// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/http.hpp"
#include "fetch/token.hpp"
#include "schema/model_ref.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::daemon {

/// The body as an object; invalid_argument where it is none, or has a member that is not in
/// `known`: a misspelt member must not be ignored.
Result<boost::json::object> body_object(const Request& request,
                                        std::initializer_list<std::string_view> known);

/// Members of it, each invalid_argument by name where it is of another type.
Result<std::string> required_text(const boost::json::object& body, std::string_view name);
Result<std::optional<std::string>> optional_text(const boost::json::object& body,
                                                 std::string_view name);
Result<std::optional<std::uint64_t>> optional_number(const boost::json::object& body,
                                                     std::string_view name);
/// A list of texts; empty where there is none. At most 1000 of them.
Result<std::vector<std::string>> optional_texts(const boost::json::object& body,
                                                std::string_view name);
Result<bool> optional_flag(const boost::json::object& body, std::string_view name);

/// The caller's own Hub token out of `Authorization: Bearer`; anonymous without.
Result<fetch::Token> request_token(const Request& request);

/// The {ref} part of the path.
Result<ModelRef> ref_part(const Request& request);

} // namespace modeld::daemon
