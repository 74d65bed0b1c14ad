// SPDX-License-Identifier: Apache-2.0
#include "daemon/weight_check.hpp"

#include "validate/check.hpp"
#include "validate/safetensors.hpp"
#include "validate/shard_index.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace modeld::daemon {
namespace {

// A repository of which only the names are known.
class NamesOnly final : public FileSet {
public:
  NamesOnly(const RepoId& repo, const std::vector<ListedFile>& files) : name_(repo.name()) {
    for (const ListedFile& file : files) {
      // An index has no bytes here, and may not decide.
      if (!file.path.ends_with(".index.json")) entries_.push_back({file.path, file.size});
    }
  }
  std::string_view name() const override { return name_; }
  const std::vector<Entry>& entries() const override { return entries_; }
  Result<std::span<const std::byte>> bytes(std::string_view path) const override {
    return fail(Errc::not_found, fmt::format("reading '{}': it is not downloaded yet", path));
  }

private:
  std::string name_;
  std::vector<Entry> entries_;
};

bool is_weight_file(std::string_view path) {
  return path.ends_with(".safetensors");
}

bool is_top_safetensors(std::string_view path) {
  return path.find('/') == std::string_view::npos &&
         (path.ends_with(".safetensors") || path.ends_with(".safetensors.index.json"));
}

} // namespace

Result<void> check_listed_weights(const RepoId& repo, const std::vector<ListedFile>& files) {
  const bool some = std::any_of(files.begin(), files.end(),
                                [](const auto& file) { return is_weight_file(file.path); });
  if (some) return {};
  const NamesOnly names(repo, files);
  if (auto selected = validate::select_weight_files(names); !selected) {
    return fail(std::move(selected).error());
  }
  return {};
}

bool has_weights(const Snapshot& snapshot) {
  return std::any_of(snapshot.files.begin(), snapshot.files.end(), [](const SnapshotFile& file) {
    return is_top_safetensors(file.path) || file.path.ends_with(".gguf");
  });
}

bool lacks_weights(const Snapshot& snapshot) {
  return std::any_of(snapshot.absent.begin(), snapshot.absent.end(),
                     [](const ListedFile& file) { return is_top_safetensors(file.path); });
}

Result<void> check_weights(const FileSet& files, WeightSet set) {
  bool safetensors = false;
  for (const FileSet::Entry& entry : files.entries()) {
    const bool top = is_top_safetensors(entry.path);
    if (top && set == WeightSet::part && is_weight_file(entry.path)) {
      MODELD_ASSIGN(const auto bytes, files.bytes(entry.path));
      MODELD_TRY(validate::read_safetensors(bytes, entry.path, validate::Profile::strict));
    }
    safetensors = safetensors || top;
    if (!entry.path.ends_with(".gguf")) continue;
    MODELD_ASSIGN(const auto bytes, files.bytes(entry.path));
    // What runtimes take is taken: the file is somebody else's, and only handed on.
    const auto report = validate::check_gguf_file(bytes, entry.path, validate::Profile::compat);
    if (auto error = report.first_error()) return fail(*std::move(error));
  }
  if (!safetensors || set == WeightSet::part) return {};
  auto checked = validate::read_weight_set(files);
  // Which of several sets is meant is for who builds from it to say.
  if (checked || checked.error().code == Errc::conflict) return {};
  return fail(std::move(checked).error());
}

Result<bool> weights_are_f32(const FileSet& files) {
  MODELD_ASSIGN(const auto weights, validate::read_weight_set(files));
  bool f32 = false;
  for (const auto& header : weights.headers) {
    for (const auto& tensor : header.tensors) {
      if (tensor.shape.size() < 2) continue;
      if (tensor.dtype != validate::SafetensorsDtype::f32) return false;
      f32 = true;
    }
  }
  return f32;
}

} // namespace modeld::daemon
