// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/worker_channel.hpp"
#include "daemon/worker_request.hpp"
#include "daemon/worker_sandbox.hpp"
#include "schema/file_set.hpp"
#include "schema/result.hpp"

#include <cstddef>
#include <span>
#include <string_view>

// What a worker can be asked for, one function for each task. They run inside of the sandbox.

namespace modeld::daemon {

struct WorkerTask {
  WorkerChannel& channel;
  const FileSet& files;
  const WorkerRequest& request;
  const Sandbox& sandbox;
};

/// Converts and quantizes the files by the request's recipe, and sends the GGUF file.
Result<void> worker_build(const WorkerTask& task);

/// Sends {"files":[...],"estimate":{...}} (check_report.hpp). Options: "profile" strict or compat,
/// "data", "estimate", "context".
Result<void> worker_report(const WorkerTask& task);

/// Sends {"status","messages","text"} about the one file. Options: "path" as it is shown, "key",
/// "full", "json".
Result<void> worker_inspect(const WorkerTask& task);

/// Sends {"headers":[bytes|null...]}: how long the header of each file is, null where more of it is
/// needed than is there. Options: "sizes", those of the whole files.
Result<void> worker_measure(const WorkerTask& task);

/// Sends what other programs want to be told about the one file: GgufFacts as an object.
Result<void> worker_facts(const WorkerTask& task);

/// Sends {"balanced","text"} about the checkpoint below k_audit_model and the GGUF file below
/// k_audit_output (audit.hpp). Options: "gguf", the latter's path, or ""; "json", "every".
Result<void> worker_audit(const WorkerTask& task);
inline constexpr std::string_view k_audit_model = "model/";
inline constexpr std::string_view k_audit_output = "gguf/"; ///< sorts first

/// Asks to begin an output ("size" is in the plan): cancelled where the owner does not want it.
Result<void> begin_output(const WorkerTask& task, boost::json::object plan);
/// A piece of it, in packets.
Result<void> send_data(const WorkerChannel& channel, std::span<const std::byte> bytes);
/// A text as the whole output.
Result<void> send_text(const WorkerTask& task, std::string_view text);

} // namespace modeld::daemon
