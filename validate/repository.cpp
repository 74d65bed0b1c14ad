// SPDX-License-Identifier: Apache-2.0
#include "validate/repository.hpp"

#include "validate/block_data.hpp"
#include "validate/escape.hpp"
#include "validate/gguf_model.hpp"
#include "validate/gguf_split.hpp"
#include "validate/repository_check.hpp"
#include "validate/repository_facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace modeld::validate {
namespace {

/// Runs work(i) for every i < count on so many threads, this one included.
template <class Work>
void in_parallel(std::size_t count, unsigned threads, Work&& work) {
  std::atomic<std::size_t> next{0};
  const auto loop = [&] {
    for (std::size_t i = next++; i < count; i = next++)
      work(i);
  };
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads && i < count; ++i)
    others.emplace_back(loop);
  loop();
  for (std::thread& other : others)
    other.join();
}

bool in_top_folder(std::string_view path) {
  return path.find('/') == std::string_view::npos;
}

/// Shards against their index, and the choice of the weight files.
std::vector<std::string> check_weights(const FileSet& files, const CheckOptions& options,
                                       FindingsByFile& findings) {
  const auto& entries = files.entries();
  const bool any = std::any_of(entries.begin(), entries.end(), [](const FileSet::Entry& entry) {
    return in_top_folder(entry.path) && (entry.path.ends_with(".safetensors") ||
                                         entry.path.ends_with(".safetensors.index.json"));
  });
  if (!any) return {};
  auto set = check_weight_set(files, options.profile, WeightLayout::hugging_face, options.limits);
  Report fresh(set.report.path(), options.profile);
  for (const Finding& finding : set.report.findings()) {
    // The files by themselves have said so already.
    const FileState* state = findings.find(finding.path);
    const auto& known = state == nullptr ? fresh.findings() : state->checked.report.findings();
    const bool repeated = std::any_of(known.begin(), known.end(), [&](const Finding& before) {
      return before.rule == finding.rule && before.offset == finding.offset &&
             before.message == finding.message;
    });
    if (repeated) continue;
    fresh.set_path(finding.path);
    fresh.add(finding.rule, finding.severity, finding.offset, finding.message, finding.hint);
  }
  findings.take(std::move(fresh));
  return set.value ? set.value->selection.files : std::vector<std::string>{};
}

/// Configuration, tokenizer and weights against each other (RC, TK).
void check_facts(RepositoryFacts& facts, const std::vector<std::string>& weights,
                 FindingsByFile& findings) {
  bool whole = true;
  for (const std::string& name : weights) {
    const FileState* state = findings.find(name);
    if (state != nullptr && state->safetensors)
      facts.tensors.add(state->checked.path, *state->safetensors);
    else
      whole = false;
  }
  Report report(".", facts.options.profile);
  read_repository_facts(facts, report);
  check_tokenizer_files(facts, report);
  check_config_rope(facts, report);
  check_special_ids(facts, report);
  if (!whole) {
    report.set_path(".");
    report.note("RC-29", std::nullopt,
                "configuration and weights were not compared, because a weight file was rejected");
  } else if (facts.config.root().is_object() && !weights.empty()) {
    if (facts.options.plan) {
      if (auto plan = facts.options.plan(facts.files)) facts.plan = *std::move(plan);
    }
    if (facts.plan) check_checkpoint_plan(*facts.plan, report);
    check_config_shapes(facts, report);
    check_config_layers(facts, report);
    check_packed_weights(facts, report);
  }
  findings.take(std::move(report));
}

/// Split files against each other, then each GGUF model against itself.
void check_gguf_models(const std::vector<FileState>& states, const RepositoryFacts& facts,
                       FindingsByFile& findings) {
  const CheckOptions& options = facts.options;
  std::vector<SplitPart> parts;
  for (const FileState& state : states)
    if (state.gguf) parts.push_back({state.checked.path, &*state.gguf});
  Report splits({}, options.profile);
  const auto models = check_splits(parts, splits);
  findings.take(std::move(splits));
  for (const std::vector<SplitPart>& model : models) {
    GgufModelView view(*model.front().header);
    for (std::size_t i = 1; i < model.size(); ++i)
      view.add_tensors(*model[i].header);
    Report report(std::string(model.front().path), options.profile);
    check_gguf_model(view, report);
    check_gguf_beside_checkpoint(facts, view, report);
    findings.take(std::move(report));
  }
}

/// A pickle beside a complete safe set is a warning for the whole, else there is nothing to use. An
/// index of pickles promises some.
void check_pickles(const std::vector<FileState>& states, const CheckOptions& options,
                   FindingsByFile& findings) {
  const auto pickle = std::find_if(states.begin(), states.end(), [](const FileState& state) {
    return state.unsafe || state.checked.path.ends_with(".bin.index.json");
  });
  if (pickle == states.end()) return;
  const bool safe = std::any_of(states.begin(), states.end(), [](const FileState& state) {
    return state.safetensors.has_value() || state.gguf.has_value();
  });
  Report report(".", options.profile);
  report.add(
      "PK-02", safe ? Severity::warning : Severity::error, std::nullopt,
      safe ? fmt::format("pickled files such as {} lie beside safe weights; they are not used",
                         quoted(pickle->checked.path))
           : fmt::format("the only weights are pickled ({})", quoted(pickle->checked.path)),
      safe ? "" : "look for a safetensors copy, or convert it in an isolated place");
  findings.take(std::move(report));
}

/// One tensor to scan.
struct DataItem {
  FileState* state;
  TensorData data;
  const GgufTensorInfo* gguf;
  const SafetensorsTensor* safetensors;
  Report report;
};

std::vector<DataItem> data_items(const FileSet& files, std::vector<FileState>& states) {
  std::vector<DataItem> items;
  for (FileState& state : states) {
    if (!state.gguf && !state.safetensors) continue;
    const auto bytes = files.bytes(state.checked.path);
    if (!bytes) continue;
    const Report report(state.checked.path, state.checked.report.profile());
    if (state.gguf)
      for (const GgufTensorInfo& tensor : state.gguf->tensors)
        items.push_back(
            {&state, gguf_tensor_data(*bytes, *state.gguf, tensor), &tensor, nullptr, report});
    else
      for (const SafetensorsTensor& tensor : state.safetensors->tensors)
        items.push_back({&state, safetensors_tensor_data(*bytes, *state.safetensors, tensor),
                         nullptr, &tensor, report});
  }
  return items;
}

void scan_data(const FileSet& files, std::vector<FileState>& states, const CheckOptions& options) {
  std::vector<DataItem> items = data_items(files, states);
  if (options.progress != nullptr)
    for (const DataItem& item : items)
      options.progress->total += item.data.bytes.size();
  in_parallel(items.size(), options.threads, [&](std::size_t i) {
    DataItem& item = items[i];
    if (item.gguf != nullptr)
      scan_gguf_tensor(item.data, item.gguf->type, item.state->gguf->encoding.big_endian,
                       item.report, options.progress);
    else
      scan_safetensors_tensor(item.data, item.safetensors->dtype, item.report, options.progress);
  });
  for (DataItem& item : items)
    item.state->checked.report.merge(std::move(item.report));
}

} // namespace

FindingsByFile::FindingsByFile(std::vector<FileState>& files) : files_(files) {
  for (std::size_t i = 0; i < files.size(); ++i)
    by_path_.emplace(files[i].checked.path, i);
}

FileState* FindingsByFile::find(std::string_view path) {
  const auto at = by_path_.find(path);
  return at == by_path_.end() ? nullptr : &files_[at->second];
}

void FindingsByFile::take(Report report) {
  for (const Finding& finding : report.findings()) {
    FileState* state = find(finding.path);
    if (state == nullptr) {
      if (!whole_) {
        whole_.emplace();
        whole_->checked = {".", "repository", Report(".", report.profile())};
      }
      state = &*whole_;
    }
    state->checked.report.add(finding.rule, finding.severity, finding.offset, finding.message,
                              finding.hint);
  }
}

std::vector<CheckedFile> check_repository(const FileSet& files, const CheckOptions& options) {
  const auto& entries = files.entries();
  std::vector<FileState> states(entries.size());
  in_parallel(entries.size(), options.threads,
              [&](std::size_t i) { states[i] = check_single_file(files, entries[i], options); });
  FindingsByFile findings(states);
  const std::vector<std::string> weights = check_weights(files, options, findings);
  RepositoryFacts facts(files, options);
  check_facts(facts, weights, findings);
  check_gguf_models(states, facts, findings);
  check_pickles(states, options, findings);
  if (options.data) scan_data(files, states, options);
  std::vector<CheckedFile> checked;
  if (auto whole = findings.whole_set()) checked.push_back(std::move(whole->checked));
  for (FileState& state : states)
    checked.push_back(std::move(state.checked));
  return checked;
}

std::string_view verdict(const Report& report) {
  if (!report.accepted()) return "reject";
  return report.warnings() > 0 ? "warn" : "accept";
}

} // namespace modeld::validate
