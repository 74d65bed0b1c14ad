// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker_main.hpp"

#include "daemon/model_plan.hpp"
#include "daemon/safe_json.hpp"
#include "daemon/weight_check.hpp"
#include "daemon/worker_channel.hpp"
#include "daemon/worker_files.hpp"
#include "daemon/worker_request.hpp"
#include "daemon/worker_sandbox.hpp"
#include "daemon/worker_tasks.hpp"
#include "quantize/convert/convert.hpp"
#include "quantize/kernels/target.hpp"
#include "schema/api.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <exception>
#include <new>

namespace modeld::daemon {
namespace {

Result<WorkerRequest> read_request(WorkerChannel& channel) {
  std::string text;
  while (true) {
    MODELD_ASSIGN(const auto packet, channel.receive());
    if (!packet || packet->kind != Packet::request) {
      return fail(Errc::malformed, "reading a worker's request: it ended early");
    }
    if (packet->payload.empty()) return WorkerRequest::from_json(text);
    if (text.size() + packet->payload.size() > k_max_worker_request) {
      return fail(Errc::malformed, "reading a worker's request: it is too long");
    }
    for (const std::byte byte : packet->payload) {
      text += static_cast<char>(byte);
    }
  }
}

Result<void> do_task(const WorkerTask& task) {
  switch (task.request.task) {
  case WorkerRequest::Task::check:
    return check_weights(task.files);
  case WorkerRequest::Task::check_each:
    return check_weights(task.files, WeightSet::part);
  case WorkerRequest::Task::architecture:
    return quantize::check_architecture(task.files, convert_options(task.request.recipe));
  case WorkerRequest::Task::build:
    return worker_build(task);
  case WorkerRequest::Task::report:
    return worker_report(task);
  case WorkerRequest::Task::inspect:
    return worker_inspect(task);
  case WorkerRequest::Task::measure:
    return worker_measure(task);
  case WorkerRequest::Task::audit:
    return worker_audit(task);
  case WorkerRequest::Task::facts:
    return worker_facts(task);
  }
  return fail(Errc::internal, "working on the files: an unknown task");
}

Result<boost::json::object> run(WorkerChannel& channel) {
  MODELD_ASSIGN(const WorkerRequest request, read_request(channel));
  // Reads the environment and asks the processor, which the sandbox may not allow.
  if (const auto& kernel = quantize::kernel_in_use(); !kernel) return fail(kernel.error());
  const Sandbox sandbox = enter_sandbox(request.memory);
  const WorkerFiles files(channel, request.name, request.files);
  MODELD_TRY(do_task({channel, files, request, sandbox}));
  return boost::json::object{};
}

Result<boost::json::object> guarded_run(WorkerChannel& channel) {
  try {
    return run(channel);
  } catch (const std::bad_alloc&) {
    return fail(Errc::unsupported,
                "working on the files: more memory is needed than a worker may have",
                "jobs.worker_memory sets the limit");
  } catch (const std::exception& error) {
    return fail(Errc::internal, fmt::format("working on the files: {}", error.what()));
  }
}

} // namespace

int run_worker() {
  WorkerChannel channel{Descriptor(k_worker_descriptor)};
  const auto outcome = guarded_run(channel);
  Result<void> sent;
  if (outcome) {
    sent = channel.send(Packet::done, boost::json::serialize(*outcome));
  } else {
    std::string text = safe_json(api::error_to_json(outcome.error()));
    if (text.size() > WorkerChannel::k_max_payload) {
      Error shorter = outcome.error();
      shorter.message = shorter.message.substr(0, 4096) + " ...";
      shorter.hint = shorter.hint.substr(0, 4096);
      shorter.details.clear();
      text = safe_json(api::error_to_json(shorter));
    }
    sent = channel.send(Packet::failed, text);
  }
  return sent ? 0 : 1;
}

} // namespace modeld::daemon
