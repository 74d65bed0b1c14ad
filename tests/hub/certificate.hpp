// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/ssl/context.hpp>

#include <memory>
#include <string>

namespace modeld::test {

/// A key and a certificate that it signed itself, for one address.
struct Certificate {
  std::string certificate_pem;
  std::string key_pem;
};

/// Good for a year around now; throws std::runtime_error where OpenSSL cannot.
Certificate make_certificate(const std::string& ip_address);
std::unique_ptr<boost::asio::ssl::context> make_tls_context(const Certificate& certificate);

} // namespace modeld::test
