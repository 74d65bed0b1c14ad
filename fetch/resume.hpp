// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fetch/headers.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace modeld::fetch {

/// What was asked of a server: bytes [first, end) of a file of `size` bytes. Without `ranged` the
/// whole file was asked for and first is 0.
struct Wanted {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
  std::uint64_t size = 0;
  bool ranged = false;
  std::string etag; ///< strong tag of the bytes so far, from the same host; may be empty
};

/// What to do with the answer.
struct Verdict {
  enum class Kind {
    append,   ///< the body is exactly what was asked for
    restart,  ///< the body is the whole file from 0: forget what there was and write it
    complete, ///< nothing is left to fetch
    refuse,   ///< the body must not be written; `why` says the reason
  };
  Kind kind = Kind::refuse;
  std::string why;
  std::uint64_t end = 0; ///< of the body's bytes in the file; append and restart
};

/// Judges a 200, 206 or 416 (hub-protocol.md 1.6 and appendix C, failure cases C01, C02, C07). Only
/// a 206 whose Content-Range starts where we stopped, ends where we asked (or before, where that is
/// worth a request) and has the listed total is appended; no length is trusted that contradicts the
/// listing.
Verdict judge(const Wanted& wanted, unsigned status, const Headers& headers);

/// The Range header's value: "bytes=A-B", or "bytes=A-" up to the end of the file.
std::string range_value(const Wanted& wanted);

/// Whether the first bytes of a body are a web page in place of a file of that name.
bool looks_like_page(std::string_view path, std::string_view content_type, std::string_view body);
/// Whether they are an LFS pointer.
bool looks_like_pointer(std::string_view body);

} // namespace modeld::fetch
