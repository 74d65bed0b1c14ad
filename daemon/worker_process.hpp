// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/job.hpp"
#include "daemon/worker_channel.hpp"
#include "daemon/worker_request.hpp"
#include "schema/byte_sink.hpp"

#include <boost/json/object.hpp>

#include <functional>
#include <optional>

namespace modeld::daemon {

/// What a worker needs from the daemon while it works. Called on the job's thread.
struct WorkerCalls {
  /// Opens a file of the request for reading.
  std::function<Result<Descriptor>(std::size_t index)> open;
  /// The size of the output is known, and nothing is written: where it goes, or why not. Not called
  /// for a check.
  std::function<Result<ByteSink*>(const boost::json::object& plan)> plan;
};

/// The daemon's side of one worker's life, over its end of the channel: the outcome, or nothing
/// where the worker went away without one.
Result<std::optional<boost::json::object>> talk_to_worker(WorkerChannel& channel,
                                                          const WorkerRequest& request,
                                                          const WorkerCalls& calls, Job& job);

/// Runs a request in a process of its own (`modeld worker`), which can do nothing but read the
/// files that it is given, compute, and send bytes back (design rule 4). Counts the output in the
/// job's progress. A worker that dies, or that breaks the protocol, fails this call and nothing
/// else; with the job cancelled it is killed.
Result<boost::json::object> run_in_worker(const WorkerRequest& request, const WorkerCalls& calls,
                                          Job& job);

} // namespace modeld::daemon
