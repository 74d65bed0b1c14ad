// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/http.hpp"

#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>

namespace modeld::daemon {

/// A message as handlers see it; who sent it is for the connection to say.
Request request_of(const boost::beast::http::request<boost::beast::http::string_body>& message);

} // namespace modeld::daemon
