// SPDX-License-Identifier: Apache-2.0
#include "daemon/stored_folder.hpp"

#include "daemon/client.hpp"
#include "schema/json.hpp"
#include "schema/model_ref.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <filesystem>

namespace modeld::daemon {

Result<StoredFolder> path_or_stored(CommandContext& context, const std::string& argument) {
  std::error_code ec;
  if (std::filesystem::exists(std::filesystem::symlink_status(argument, ec))) {
    return StoredFolder{argument, {}};
  }
  const auto nothing = [&argument](std::string_view what, std::string hint) {
    return fail(Errc::not_found, fmt::format("looking for '{}': {}", argument, what),
                std::move(hint));
  };
  if (!ModelRef::parse(argument)) return nothing("there is no such file or folder", {});
  Client client(context.socket, {});
  auto answer = client.get("/v1/snapshots/" + url_part(argument));
  if (!answer && answer.error().code == Errc::not_found)
    return nothing(
        "there is no such file or folder, and no such snapshot is here",
        fmt::format("modelctl ls shows what is here; modelctl pull {} fetches a snapshot "
                    "of that name",
                    argument));
  if (!answer && answer.error().code == Errc::unreachable)
    return nothing("there is no such file or folder, and no daemon answers that may have a "
                   "snapshot of that name",
                   answer.error().hint);
  if (!answer) return fail(std::move(answer).error());
  const auto* snapshot = answer->body.if_contains("snapshot");
  if (snapshot == nullptr || !snapshot->is_object())
    return fail(Errc::internal, fmt::format("looking for '{}': no snapshot came", argument));
  StoredFolder stored;
  MODELD_ASSIGN(stored.path, json_string(snapshot->get_object(), "path"));
  MODELD_ASSIGN(const auto repo, json_string(snapshot->get_object(), "repo"));
  stored.model = RepoId{repo}.name();
  return stored;
}

} // namespace modeld::daemon
