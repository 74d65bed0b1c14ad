// SPDX-License-Identifier: Apache-2.0
#include "quantize/architecture/architecture.hpp"

#include "quantize/architecture/keys.hpp"
#include "quantize/architecture/read.hpp"
#include "schema/embedded_file.hpp"
#include "schema/nearest_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace modeld::quantize {
namespace {

bool is_projector(FamilyKind kind) {
  return kind == FamilyKind::projector;
}

/// Two files that read one class must tell themselves apart.
Result<void> check_classes(const std::vector<Architecture>& all) {
  std::map<std::pair<bool, std::string_view>, const Architecture*> owners;
  for (const Architecture& one : all) {
    for (const std::string& name : one.classes) {
      const auto [at, fresh] =
          owners.emplace(std::pair(is_projector(one.kind), std::string_view(name)), &one);
      if (!fresh && !at->second->when) {
        return fail(Errc::internal,
                    fmt::format("reading '{}': class '{}' is taken by '{}', which has no 'when'",
                                one.file, name, at->second->file));
      }
    }
  }
  return {};
}

Result<void> check_defaults(const std::vector<Architecture>& all) {
  std::map<std::string_view, std::string_view> owners;
  for (const Architecture& one : all) {
    for (const auto& [model_type, unused] : one.defaults) {
      const auto [at, fresh] = owners.emplace(model_type, one.file);
      if (!fresh) {
        return fail(Errc::internal, fmt::format("reading '{}': defaults of '{}' stand in '{}' too",
                                                one.file, model_type, at->second));
      }
    }
  }
  return {};
}

} // namespace

Result<ArchitectureSet>
ArchitectureSet::load(std::span<const std::pair<std::string_view, std::string_view>> files) {
  ArchitectureSet set;
  for (const auto& [name, text] : files) {
    if (name != k_standard_file) continue;
    MODELD_ASSIGN(set.standard_, read_standard_rules(text));
  }
  for (const auto& [name, text] : files) {
    if (name == k_standard_file) continue;
    MODELD_ASSIGN(Architecture one, read_architecture(name, text, set.standard_));
    set.all_.push_back(std::move(one));
  }
  MODELD_TRY(check_classes(set.all_));
  MODELD_TRY(check_defaults(set.all_));
  return set;
}

bool Architecture::knows(std::string_view option) const {
  return std::find(options.begin(), options.end(), option) != options.end();
}

Result<const ArchitectureSet*> ArchitectureSet::builtin() {
  static const Result<ArchitectureSet> loaded = [] {
    std::vector<std::pair<std::string_view, std::string_view>> files;
    for (const EmbeddedFile& file : architectures::files()) {
      files.emplace_back(file.name, file.text);
    }
    return load(files);
  }();
  if (!loaded) return fail(loaded.error());
  return &*loaded;
}

std::vector<const Architecture*> ArchitectureSet::find(std::string_view class_name,
                                                       FamilyKind kind) const {
  std::vector<const Architecture*> found;
  for (const Architecture& one : all_) {
    if (is_projector(one.kind) != is_projector(kind)) continue;
    if (std::find(one.classes.begin(), one.classes.end(), class_name) != one.classes.end()) {
      found.push_back(&one);
    }
  }
  return found;
}

const std::vector<Assignment>* ArchitectureSet::defaults(std::string_view model_type) const {
  for (const Architecture& one : all_) {
    if (const auto at = one.defaults.find(model_type); at != one.defaults.end()) {
      return &at->second;
    }
  }
  return nullptr;
}

std::vector<std::pair<std::string_view, const std::vector<Assignment>*>>
ArchitectureSet::part_defaults(std::string_view model_type) const {
  std::vector<std::pair<std::string_view, const std::vector<Assignment>*>> found;
  const std::string prefix = std::string(model_type) + "/";
  for (const Architecture& one : all_) {
    for (const auto& [name, defaults] : one.defaults) {
      if (!name.starts_with(prefix)) continue;
      found.emplace_back(std::string_view(name).substr(prefix.size()), &defaults);
    }
  }
  return found;
}

std::vector<std::string_view> ArchitectureSet::class_names(FamilyKind kind) const {
  std::set<std::string_view> names;
  for (const Architecture& one : all_) {
    if (is_projector(one.kind) == is_projector(kind))
      names.insert(one.classes.begin(), one.classes.end());
  }
  return {names.begin(), names.end()};
}

std::vector<std::string_view> ArchitectureSet::nearby(std::string_view class_name,
                                                      FamilyKind kind) const {
  constexpr std::size_t k_shown = 5;
  std::vector<std::string_view> names = class_names(kind);
  std::stable_sort(names.begin(), names.end(), [&](std::string_view a, std::string_view b) {
    return edit_distance(class_name, a) < edit_distance(class_name, b);
  });
  names.resize(std::min(names.size(), k_shown));
  return names;
}

} // namespace modeld::quantize
