// SPDX-License-Identifier: Apache-2.0
#include "validate/check.hpp"
#include "validate/escape.hpp"
#include "validate/gguf_split.hpp"
#include "validate/json_document.hpp"
#include "validate/repository_check.hpp"
#include "validate/sniff.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace modeld::validate {
namespace {

bool is_any(std::string_view path, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view ending) { return path.ends_with(ending); });
}

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

/// What is still being downloaded has a name of the downloader's (GN-09).
bool is_incomplete(std::string_view path) {
  return is_any(path, {".incomplete", ".part", ".aria2", ".crdownload"});
}

void check_json_file(std::span<const std::byte> bytes, std::string_view path,
                     const CheckOptions& options, Report& report) {
  const FileEnds ends = FileEnds::of(bytes);
  if (report_wrong_content(ends, ContentKind::json, report)) return;
  const std::string_view name = base_name(path);
  // These have readers of their own.
  if (name == "tokenizer.json" || name == "config.json" || name == "generation_config.json") return;
  if (bytes.size() > options.limits.config_bytes) {
    report.warn("GN-08", 0,
                fmt::format("the file has {} bytes, JSON files are read up to {}", bytes.size(),
                            options.limits.config_bytes));
    return;
  }
  const JsonDocument document = JsonDocument::parse(text_of(bytes), JsonReader::NonFinite::accept);
  if (!document.fault().empty())
    report.error("GN-03", document.fault_offset(),
                 fmt::format("the file is no JSON: {}", document.fault()));
  else if (const auto& twice = document.duplicates(); !twice.empty())
    report.warn("RC-01", twice.front().offset,
                fmt::format("member {} stands twice", quoted(twice.front().name)));
}

/// RC-41: programs and archives have no business in a model's folder.
void check_stray(ContentKind kind, std::string_view path, Report& report) {
  const bool program = kind == ContentKind::executable || kind == ContentKind::llamafile ||
                       is_any(path, {".exe", ".dll", ".so", ".sh", ".bat", ".cmd", ".ps1", ".jar"});
  const bool archive = kind == ContentKind::zip || kind == ContentKind::tar ||
                       kind == ContentKind::gzip || kind == ContentKind::xz ||
                       kind == ContentKind::zstd || kind == ContentKind::bzip2 ||
                       kind == ContentKind::seven_zip || kind == ContentKind::rar;
  if (program || (archive && !is_unsafe_weight_name(path)))
    report.warn("RC-41", std::nullopt,
                fmt::format("{} is {}; nothing here uses it", quoted(base_name(path)),
                            program ? "a program" : describe(kind)));
}

/// Anything else: only what it must not be.
void check_other_file(const FileEnds& ends, std::string_view path, FileState& state) {
  Report& report = state.checked.report;
  const ContentKind kind = sniff(ends);
  switch (kind) {
  case ContentKind::torch_zip:
  case ContentKind::torch_legacy:
  case ContentKind::torch_tar:
  case ContentKind::pickle:
  case ContentKind::joblib:
  case ContentKind::numpy:
  case ContentKind::npz:
  case ContentKind::hdf5:
  case ContentKind::ggml:
  case ContentKind::ggmf:
  case ContentKind::ggjt:
  case ContentKind::ggla:
  case ContentKind::ggml_state:
  case ContentKind::gguf_swapped:
  case ContentKind::lfs_pointer:
    report_wrong_content(ends, ContentKind::unknown, report);
    state.checked.format = kind >= ContentKind::ggml ? "legacy" : "pickle";
    if (kind == ContentKind::lfs_pointer) state.checked.format = "lfs-pointer";
    break;
  case ContentKind::empty:
    // An empty weight file is a failed download; an empty __init__.py is not.
    if (is_unsafe_weight_name(path) || path.ends_with(".model"))
      report.error("GN-02", 0, "the file is empty", "download it again");
    break;
  default:
    check_stray(kind, path, report);
    if (!is_unsafe_weight_name(path)) return;
    if (kind == ContentKind::error_page || kind == ContentKind::seven_zip ||
        kind == ContentKind::gzip || kind == ContentKind::xz || kind == ContentKind::bzip2 ||
        kind == ContentKind::lz4 || kind == ContentKind::zip || kind == ContentKind::tar ||
        kind == ContentKind::rar || kind == ContentKind::zstd)
      report_wrong_content(ends, ContentKind::unknown, report);
    report.error("PK-01", 0,
                 fmt::format("{} has a name of pickled weights; such files are programs and are "
                             "never read",
                             quoted(base_name(path))),
                 "look for a safetensors copy, or convert it in an isolated place");
    state.checked.format = "pickle";
    break;
  }
  state.unsafe = report.has("PK-01");
}

} // namespace

FileState check_single_file(const FileSet& files, const FileSet::Entry& entry,
                            const CheckOptions& options) {
  FileState state;
  const std::string& path = entry.path;
  state.checked = {path, "other", Report(path, options.profile)};
  state.size = entry.size;
  Report& report = state.checked.report;
  const auto bytes = files.bytes(path);
  if (!bytes) {
    report.error("GN-01", std::nullopt, escape_text(bytes.error().message));
    return state;
  }
  const FileEnds ends = FileEnds::of(*bytes);
  const bool gguf =
      path.ends_with(".gguf") || (!path.ends_with(".json") && sniff(ends) == ContentKind::gguf);
  if (path.ends_with(".safetensors")) {
    state.checked.format = "safetensors";
    if (report_wrong_content(ends, ContentKind::safetensors, report)) {
      state.unsafe = report.has("PK-01");
      return state;
    }
    auto checked = check_safetensors(*bytes, bytes->size(), path, options.profile, options.limits);
    if (checked.accepted()) state.safetensors = std::move(checked.value);
    report = std::move(checked.report);
    warn_if_also_pickle(*bytes, report);
  } else if (is_byte_split_name(path)) {
    state.checked.format = "gguf";
    report.error("SP-10", std::nullopt, "the file is a piece of a GGUF file that was cut by bytes",
                 "join the pieces in order (cat) before use");
  } else if (gguf) {
    state.checked.format = "gguf";
    if (report_wrong_content(ends, ContentKind::gguf, report)) return state;
    auto checked = check_gguf(*bytes, bytes->size(), path, options.profile, options.limits);
    if (checked.accepted()) state.gguf = std::move(checked.value);
    report = std::move(checked.report);
  } else if (path.ends_with(".safetensors.index.json")) {
    state.checked.format = "safetensors-index";
    if (report_wrong_content(ends, ContentKind::json, report)) return state;
    report = check_shard_index(*bytes, path, options.profile, options.limits).report;
  } else if (path.ends_with(".json")) {
    state.checked.format = "json";
    check_json_file(*bytes, path, options, report);
  } else if (is_incomplete(path)) {
    report.warn("GN-09", std::nullopt, "an unfinished download", "finish or remove it");
  } else {
    check_other_file(ends, path, state);
  }
  return state;
}

} // namespace modeld::validate
