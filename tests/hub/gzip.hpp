// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace modeld::test {

/// A valid gzip member around the bytes (RFC 1952), in stored blocks: a proxy's compression, as far
/// as a client can tell.
std::string gzip_stored(std::string_view bytes);

} // namespace modeld::test
