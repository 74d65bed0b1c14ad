// SPDX-License-Identifier: Apache-2.0
#include "daemon/model_plan.hpp"
#include "daemon/worker_tasks.hpp"
#include "quantize/gguf/gguf_writer.hpp"
#include "quantize/gguf/pipeline.hpp"
#include "schema/byte_sink.hpp"

#include <boost/json.hpp>

namespace modeld::daemon {
namespace {

class ChannelSink final : public ByteSink {
public:
  explicit ChannelSink(const WorkerChannel& channel) : channel_(channel) {}
  Result<void> write(std::span<const std::byte> bytes) override {
    return send_data(channel_, bytes);
  }

private:
  const WorkerChannel& channel_;
};

} // namespace

Result<void> worker_build(const WorkerTask& task) {
  MODELD_ASSIGN(const ModelPlan plan, plan_model(task.files, task.request.recipe));
  MODELD_ASSIGN(const std::uint64_t size, quantize::gguf_file_size(plan.model));
  MODELD_TRY(begin_output(task, {{"size", size}, {"via", plan.recipe.via}}));
  ChannelSink sink(task.channel);
  quantize::WriteOptions options;
  options.threads = task.request.threads;
  options.sources = &task.files;
  MODELD_TRY(quantize::write_gguf(plan.model, sink, options));
  return {};
}

} // namespace modeld::daemon
