// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker_tasks.hpp"

#include <boost/json.hpp>

#include <algorithm>

namespace modeld::daemon {

Result<void> begin_output(const WorkerTask& task, boost::json::object plan) {
  boost::json::array missing;
  for (const std::string& line : task.sandbox.missing) {
    missing.emplace_back(line);
  }
  plan["missing"] = std::move(missing);
  MODELD_TRY(task.channel.send(Packet::plan, boost::json::serialize(plan)));
  MODELD_ASSIGN(const auto answer, task.channel.receive());
  if (!answer || answer->kind != Packet::go) {
    return fail(Errc::cancelled, "working on the files: the daemon does not want the output");
  }
  return {};
}

Result<void> send_data(const WorkerChannel& channel, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(bytes.size(), WorkerChannel::k_max_payload));
    MODELD_TRY(channel.send(Packet::data, piece));
    bytes = bytes.subspan(piece.size());
  }
  return {};
}

Result<void> send_text(const WorkerTask& task, std::string_view text) {
  MODELD_TRY(begin_output(task, {{"size", text.size()}}));
  return send_data(task.channel, std::as_bytes(std::span(text)));
}

} // namespace modeld::daemon
