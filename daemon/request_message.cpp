// SPDX-License-Identifier: Apache-2.0
#include "daemon/request_message.hpp"

#include <algorithm>
#include <cctype>

namespace modeld::daemon {

Request request_of(const boost::beast::http::request<boost::beast::http::string_body>& message) {
  Request request;
  request.method = std::string(message.method_string());
  const std::string_view target(message.target().data(), message.target().size());
  request.path = target.substr(0, target.find('?'));
  request.body = message.body();
  for (const auto& field : message) {
    std::string name(field.name_string());
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    request.headers[name] = std::string(field.value());
  }
  return request;
}

} // namespace modeld::daemon
