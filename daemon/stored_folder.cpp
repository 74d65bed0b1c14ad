// SPDX-License-Identifier: Apache-2.0
#include "daemon/stored_folder.hpp"

#include "daemon/client.hpp"
#include "schema/json.hpp"
#include "schema/model_ref.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <filesystem>

namespace modeld::daemon {

Result<std::string> path_or_stored(CommandContext& context, const std::string& argument) {
  std::error_code ec;
  if (std::filesystem::exists(std::filesystem::symlink_status(argument, ec))) return argument;
  const auto nothing = [&argument](std::string hint) {
    return fail(Errc::not_found,
                fmt::format("looking for '{}': there is no such file or folder", argument),
                std::move(hint));
  };
  if (!ModelRef::parse(argument)) return nothing({});
  Client client(context.socket, {});
  auto answer = client.get("/v1/snapshots/" + url_part(argument));
  if (!answer && answer.error().code == Errc::not_found)
    return nothing("nor is it the ref of a snapshot that is here: modelctl ls shows those");
  if (!answer && answer.error().code == Errc::unreachable)
    return nothing("whether it is the ref of a snapshot, only the daemon knows, and it does not "
                   "answer");
  if (!answer) return fail(std::move(answer).error());
  const auto* snapshot = answer->body.if_contains("snapshot");
  if (snapshot == nullptr || !snapshot->is_object())
    return fail(Errc::internal, fmt::format("looking for '{}': no snapshot came", argument));
  return json_string(snapshot->get_object(), "path");
}

} // namespace modeld::daemon
