// SPDX-License-Identifier: Apache-2.0
#include "validate/gguf_split.hpp"

#include "validate/escape.hpp"
#include "validate/shard_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>

namespace modeld::validate {
namespace {

using T = GgufType;

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

/// The three keys of one part, as far as they are there.
struct SplitKeys {
  std::optional<std::uint64_t> no;
  std::optional<std::uint64_t> count;
  std::optional<std::uint64_t> tensors;
  bool good = true;
};

class SplitSet {
public:
  SplitSet(std::uint32_t total, Report& report) : total_(total), report_(report) {}

  void add(SplitPart part, std::uint32_t number) { parts_.emplace(number, part); }
  /// The parts in order, where the set may be used as a whole.
  std::optional<std::vector<SplitPart>> check();

private:
  SplitKeys read(const SplitPart& part);
  void check_part(std::uint32_t number, const SplitPart& part, const SplitKeys& keys);
  void check_tensors(std::uint64_t declared);
  void check_architectures();

  std::uint32_t total_;
  Report& report_;
  std::map<std::uint32_t, SplitPart> parts_;
};

/// A key of exactly this type, or SP-01.
std::optional<std::uint64_t> typed(const SplitPart& part, std::string_view key, T type, bool needed,
                                   SplitKeys& keys, Report& report) {
  const GgufValueView* value = part.header->find(key);
  if (value == nullptr) {
    if (!needed) return std::nullopt;
    keys.good = false;
    report.error("SP-01", std::nullopt, fmt::format("the part has no {}", key));
    return std::nullopt;
  }
  if (value->type != type) {
    keys.good = false;
    report.error(
        "SP-01", value->offset,
        fmt::format("{} is of type {}, it must be {}", key, name(value->type), name(type)));
    return std::nullopt;
  }
  return value->as_u64();
}

SplitKeys read_keys(const SplitPart& part, bool needed, Report& report) {
  SplitKeys keys;
  report.set_path(std::string(part.path));
  keys.no = typed(part, "split.no", T::u16, needed, keys, report);
  keys.count = typed(part, "split.count", T::u16, needed, keys, report);
  keys.tensors = typed(part, "split.tensors.count", T::i32, needed, keys, report);
  return keys;
}

SplitKeys SplitSet::read(const SplitPart& part) {
  return read_keys(part, true, report_);
}

void SplitSet::check_part(std::uint32_t number, const SplitPart& part, const SplitKeys& keys) {
  report_.set_path(std::string(part.path));
  if (keys.no && *keys.no != number - 1) {
    report_.error("SP-04", part.header->find("split.no")->offset,
                  fmt::format("split.no is {}, the name says part {}, which is {} counted from 0",
                              *keys.no, number, number - 1));
  }
  if (keys.count && *keys.count != total_) {
    report_.error(
        "SP-05", part.header->find("split.count")->offset,
        fmt::format("split.count is {}, the names tell of {} parts", *keys.count, total_));
  }
}

void SplitSet::check_tensors(std::uint64_t declared) {
  std::uint64_t total = 0;
  std::vector<std::pair<std::string_view, std::string_view>> owners; // tensor, file
  NameIndex names;
  for (const auto& [number, part] : parts_) {
    report_.set_path(std::string(part.path));
    total += part.header->tensors.size();
    for (const GgufTensorInfo& tensor : part.header->tensors) {
      const auto name_at = [&](std::uint32_t i) { return owners[i].first; };
      const auto before =
          names.insert(tensor.name, static_cast<std::uint32_t>(owners.size()), name_at);
      owners.emplace_back(tensor.name, part.path);
      if (before && !report_.full())
        report_.error("SP-07", tensor.info_offset,
                      fmt::format("tensor {} stands in {} too", quoted(tensor.name),
                                  quoted(owners[*before].second)));
    }
  }
  if (total == declared) return;
  report_.set_path(std::string(parts_.begin()->second.path));
  report_.error(
      "SP-06", parts_.begin()->second.header->find("split.tensors.count")->offset,
      fmt::format("split.tensors.count is {}, the parts have {} tensors", declared, total));
}

void SplitSet::check_architectures() {
  const GgufValueView* first = parts_.begin()->second.header->find("general.architecture");
  for (const auto& [number, part] : parts_) {
    const GgufValueView* own = part.header->find("general.architecture");
    if (number == 1 || own == nullptr || first == nullptr || own->as_string() == first->as_string())
      continue;
    report_.set_path(std::string(part.path));
    report_.warn("SP-08", own->offset,
                 "general.architecture differs from the first part's, which is used");
  }
}

std::optional<std::vector<SplitPart>> SplitSet::check() {
  const std::size_t before = report_.errors();
  std::optional<std::uint64_t> declared;
  for (const auto& [number, part] : parts_) {
    const SplitKeys keys = read(part);
    check_part(number, part, keys);
    if (!keys.tensors) continue;
    if (declared && *declared != *keys.tensors) {
      report_.error(
          "SP-06", part.header->find("split.tensors.count")->offset,
          fmt::format("split.tensors.count is {}, another part says {}", *keys.tensors, *declared));
    }
    if (!declared) declared = keys.tensors;
  }
  report_.set_path(std::string(parts_.begin()->second.path));
  for (std::uint32_t number = 1; number <= total_; ++number) {
    if (parts_.contains(number)) continue;
    report_.error("SP-03", std::nullopt, fmt::format("part {} of {} is not there", number, total_),
                  "a split model is used as a whole; download every part");
    break;
  }
  if (report_.errors() == before && declared) check_tensors(*declared);
  check_architectures();
  if (report_.errors() != before) return std::nullopt;
  std::vector<SplitPart> whole;
  for (const auto& [number, part] : parts_)
    whole.push_back(part);
  return whole;
}

/// A file whose name tells of no split.
bool check_lone_file(const SplitPart& part, Report& report) {
  if (part.header->find("split.no") == nullptr && part.header->find("split.count") == nullptr &&
      part.header->find("split.tensors.count") == nullptr)
    return true;
  const SplitKeys keys = read_keys(part, false, report);
  if (!keys.good) return false;
  if (keys.count.value_or(0) < 2) return true; // as the merge tool leaves it
  const std::uint64_t offset = part.header->find("split.count")->offset;
  report.error("SP-02", offset,
               fmt::format("split.count is {}, and the name is not of the form "
                           "PREFIX-00001-of-{:05}.gguf",
                           *keys.count, *keys.count));
  report.error("SP-09", offset, "split.count of at least 2 in a file that is not a part of a split",
               "an old tool left the key there: remove it, or merge and quantize again");
  return false;
}

} // namespace

bool is_byte_split_name(std::string_view path) {
  const std::string_view name = base_name(path);
  const std::size_t at = name.rfind(".gguf");
  if (at == std::string_view::npos) return false;
  const std::string_view tail = name.substr(at + 5);
  if (tail.starts_with(".part") || tail.starts_with("-split-") || tail.starts_with(".split-"))
    return true;
  return tail.size() == 4 && tail[0] == '.' &&
         tail.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

std::vector<std::vector<SplitPart>> check_splits(std::span<const SplitPart> parts, Report& report) {
  std::vector<std::vector<SplitPart>> whole;
  std::map<std::pair<std::string, std::uint32_t>, SplitSet> sets;
  for (const SplitPart& part : parts) {
    const auto numbered = numbered_name(part.path, ".gguf");
    if (!numbered || numbered->total < 2 || numbered->number < 1 ||
        numbered->number > numbered->total) {
      if (check_lone_file(part, report)) whole.push_back({part});
      continue;
    }
    auto& set =
        sets.try_emplace({std::string(numbered->prefix), numbered->total}, numbered->total, report)
            .first->second;
    set.add(part, numbered->number);
  }
  for (auto& [key, set] : sets)
    if (auto complete = set.check()) whole.push_back(*std::move(complete));
  return whole;
}

} // namespace modeld::validate
