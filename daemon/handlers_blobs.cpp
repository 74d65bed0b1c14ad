// SPDX-License-Identifier: Apache-2.0
#include "daemon/blob_access.hpp"
#include "daemon/byte_range.hpp"
#include "daemon/services.hpp"

#include <fmt/format.h>

namespace modeld::daemon {
namespace {

Response unsatisfiable(const store::BlobInfo& blob, std::string_view range) {
  Response response =
      Response::problem({Errc::invalid_argument,
                         fmt::format("reading blob '{}': range '{}' starts behind its {} bytes",
                                     blob.sha256.hex(), range, blob.size),
                         {},
                         {},
                         0});
  response.status = 416;
  response.headers.emplace_back("Content-Range", fmt::format("bytes */{}", blob.size));
  return response;
}

Result<Response> blob(Services& services, const Request& request) {
  MODELD_ASSIGN(const auto found,
                require_blob(services.store, request.part("digest"), request.peer));
  const ByteRange range = parse_range(request.header("range"), found.size);
  if (range.kind == ByteRange::Kind::unsatisfiable) {
    return unsatisfiable(found, request.header("range"));
  }
  MODELD_TRY(require_unchanged(services, found));
  MODELD_ASSIGN(auto file, open_blob(services.store, found));
  services.store.touch(found.sha256);
  Response response;
  response.content_type = "application/octet-stream";
  response.headers.emplace_back("Accept-Ranges", "bytes");
  response.headers.emplace_back("ETag", fmt::format("\"{}\"", found.sha256.hex()));
  if (range.kind == ByteRange::Kind::part) {
    response.status = 206;
    response.headers.emplace_back(
        "Content-Range",
        fmt::format("bytes {}-{}/{}", range.offset, range.offset + range.size - 1, found.size));
  }
  response.body = FileBody{std::move(file), range.offset, range.size};
  return response;
}

} // namespace

void add_blob_routes(Router& router, Services& services) {
  router.add("GET", "/v1/blobs/{digest}",
             [&services](const Request& request) { return blob(services, request); });
}

} // namespace modeld::daemon
