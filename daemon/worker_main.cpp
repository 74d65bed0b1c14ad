// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker_main.hpp"

#include "daemon/model_plan.hpp"
#include "daemon/weight_check.hpp"
#include "daemon/worker_channel.hpp"
#include "daemon/worker_files.hpp"
#include "daemon/worker_request.hpp"
#include "daemon/worker_sandbox.hpp"
#include "quantize/gguf/gguf_writer.hpp"
#include "quantize/gguf/pipeline.hpp"
#include "quantize/kernels/target.hpp"
#include "schema/api.hpp"
#include "schema/byte_sink.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <new>

namespace modeld::daemon {
namespace {

// Sends the output in packets.
class ChannelSink final : public ByteSink {
public:
  explicit ChannelSink(WorkerChannel& channel) : channel_(channel) {}
  Result<void> write(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const auto piece = bytes.first(std::min(bytes.size(), WorkerChannel::k_max_payload));
      MODELD_TRY(channel_.send(Packet::data, piece));
      bytes = bytes.subspan(piece.size());
    }
    return {};
  }

private:
  WorkerChannel& channel_;
};

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

Result<boost::json::object> build(WorkerChannel& channel, const FileSet& files,
                                  const WorkerRequest& request, const Sandbox& sandbox) {
  MODELD_ASSIGN(const ModelPlan plan, plan_model(files, request.recipe));
  MODELD_ASSIGN(const std::uint64_t size, quantize::gguf_file_size(plan.model));
  boost::json::array missing;
  for (const std::string& line : sandbox.missing) {
    missing.emplace_back(line);
  }
  MODELD_TRY(channel.send(
      Packet::plan,
      boost::json::serialize(boost::json::object{
          {"size", size}, {"via", plan.recipe.via}, {"missing", std::move(missing)}})));
  MODELD_ASSIGN(const auto answer, channel.receive());
  if (!answer || answer->kind != Packet::go) {
    return fail(Errc::cancelled, "building: the daemon does not want it");
  }
  ChannelSink sink(channel);
  quantize::WriteOptions options;
  options.threads = request.threads;
  options.sources = &files;
  MODELD_TRY(quantize::write_gguf(plan.model, sink, options));
  return boost::json::object{};
}

Result<boost::json::object> run(WorkerChannel& channel) {
  MODELD_ASSIGN(const WorkerRequest request, read_request(channel));
  // Reads the environment and asks the processor, which the sandbox may not allow.
  if (const auto& kernel = quantize::kernel_in_use(); !kernel) return fail(kernel.error());
  const Sandbox sandbox = enter_sandbox(request.memory);
  const WorkerFiles files(channel, request.name, request.files);
  if (request.task == WorkerRequest::Task::build) {
    return build(channel, files, request, sandbox);
  }
  MODELD_TRY(check_weights(files));
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
    std::string text = boost::json::serialize(api::error_to_json(outcome.error()));
    if (text.size() > WorkerChannel::k_max_payload) {
      Error shorter = outcome.error();
      shorter.message = shorter.message.substr(0, 4096) + " ...";
      shorter.hint = shorter.hint.substr(0, 4096);
      shorter.details.clear();
      text = boost::json::serialize(api::error_to_json(shorter));
    }
    sent = channel.send(Packet::failed, text);
  }
  return sent ? 0 : 1;
}

} // namespace modeld::daemon
