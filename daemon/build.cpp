// SPDX-License-Identifier: Apache-2.0
#include "daemon/build.hpp"

#include "daemon/weight_check.hpp"
#include "quantize/convert.hpp"
#include "quantize/gguf_writer.hpp"
#include "quantize/pipeline.hpp"
#include "quantize/quantize_model.hpp"
#include "schema/version.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>

namespace modeld::daemon {
namespace {

using Clock = std::chrono::steady_clock;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

quantize::ConvertOptions convert_options(const Recipe& recipe) {
  quantize::ConvertOptions options;
  options.outtype = lower(recipe.via.empty() ? recipe.target : recipe.via);
  options.pre = recipe.pre;
  if (!recipe.model_name.empty()) options.model_name = recipe.model_name;
  options.force = recipe.force;
  return options;
}

// The plan of the whole file: no weight is read yet.
Result<quantize::GgufModel> plan_model(const FileSet& files, const Recipe& recipe) {
  MODELD_ASSIGN(auto converted, quantize::convert(files, convert_options(recipe)));
  if (recipe.via.empty()) return std::move(converted.model);
  quantize::QuantizeRequest request;
  request.recipe = recipe;
  MODELD_ASSIGN(auto quantized, quantize::quantize_model(converted.model, request));
  if (quantized.parts.size() != 1) {
    return fail(Errc::internal, fmt::format("planning '{}': {} parts, expected one",
                                            recipe.canonical(), quantized.parts.size()));
  }
  return std::move(quantized.parts.front());
}

Result<store::BlobInfo> write_model(Services& services, Job& job, const std::string& what,
                                    const quantize::GgufModel& model) {
  MODELD_ASSIGN(const std::uint64_t size, quantize::gguf_file_size(model));
  MODELD_ASSIGN(auto space, services.store.reserve_space(size));
  job.begin_phase("converting", size);
  store::Expected expected;
  expected.size = size;
  expected.what = what;
  expected.job = job.id();
  expected.space = std::move(space);
  MODELD_ASSIGN(const auto ingest, services.store.begin_ingest(std::move(expected)));
  quantize::WriteOptions options;
  options.threads = static_cast<unsigned>(services.config.jobs.build_threads);
  options.progress = &job.progress();
  MODELD_TRY(quantize::write_gguf(model, *ingest, options));
  job.begin_phase("publishing");
  return ingest->commit();
}

} // namespace

Result<store::Variant> build_variant(Services& services, Job& job, const Snapshot& snapshot,
                                     Recipe recipe) {
  MODELD_ASSIGN(const auto slot, services.builds.take(job));
  const auto started = Clock::now();
  job.begin_phase("converting");
  MODELD_ASSIGN(const auto files, services.store.snapshot_files(snapshot));
  if (recipe.via == "AUTO") {
    MODELD_ASSIGN(const bool f32, weights_are_f32(*files));
    if (f32) recipe.via = "F32";
  }
  MODELD_ASSIGN(const auto model, plan_model(*files, recipe));
  store::Variant variant;
  const store::VariantInputs inputs = store::variant_inputs(snapshot, recipe);
  variant.key = store::variant_key(inputs);
  variant.repo = snapshot.repo;
  variant.commit = snapshot.commit;
  variant.recipe = inputs.recipe;
  variant.converter = inputs.converter;
  variant.sources = inputs.sources;
  variant.file_name = store::variant_file_name(snapshot, recipe, variant.key);
  MODELD_ASSIGN(const auto blob, write_model(services, job, variant.file_name, model));
  variant.result = blob.sha256;
  variant.size = blob.size;
  variant.added = store::now();
  variant.build_ms = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - started).count());
  MODELD_TRY(services.store.publish_variant(variant));
  services.metrics.bytes_built(blob.size);
  return variant;
}

} // namespace modeld::daemon
