// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/worker_channel.hpp"
#include "daemon/worker_request.hpp"
#include "schema/byte_sink.hpp"
#include "schema/progress.hpp"

#include <boost/json/object.hpp>

#include <functional>
#include <optional>
#include <string>

namespace modeld::daemon {

/// What a worker needs from its owner while it works. Called on the thread that runs it.
struct WorkerCalls {
  /// Opens a file of the request for reading.
  std::function<Result<Descriptor>(std::size_t index)> open;
  /// The size of the output is known, and nothing is written: where it goes, or why not. Not called
  /// for a task without an output.
  std::function<Result<ByteSink*>(const boost::json::object& plan)> plan;
  /// Whether bytes of the output are what `progress` counts; else the worker counts by itself.
  bool output_is_work = true;
};

/// The daemon's side of one worker's life, over its end of the channel: the outcome, or nothing
/// where the worker went away without one.
Result<std::optional<boost::json::object>> talk_to_worker(WorkerChannel& channel,
                                                          const WorkerRequest& request,
                                                          const WorkerCalls& calls,
                                                          Progress& progress);

/// Runs a request in a process of its own (`modeld worker`), which can do nothing but read the
/// files that it is given, compute, and send bytes back (design rule 4). Counts the output, or what
/// the worker says, in `progress`. A worker that dies, or that breaks the protocol, fails this call
/// and nothing else; when `progress` is cancelled it is killed.
Result<boost::json::object> run_in_worker(const WorkerRequest& request, const WorkerCalls& calls,
                                          Progress& progress);

/// The same for a task whose output is a text of at most k_max_worker_text bytes.
Result<std::string> read_from_worker(const WorkerRequest& request,
                                     const std::function<Result<Descriptor>(std::size_t)>& open,
                                     Progress& progress);

inline constexpr std::size_t k_max_worker_text = 256U << 20;

} // namespace modeld::daemon
