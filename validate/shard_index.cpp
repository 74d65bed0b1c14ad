// SPDX-License-Identifier: Apache-2.0
// { "metadata"?: { "total_size"?: number, ... }, "weight_map": { tensor: file ... }, ... }
#include "validate/shard_index.hpp"

#include "validate/escape.hpp"
#include "validate/json_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace modeld::validate {
namespace {

constexpr std::size_t k_max_depth = 64;
constexpr std::string_view k_rerun = "pull the repository again, or tell its author";

/// A byte count that some writers print as a float.
std::optional<std::uint64_t> integral(std::string_view literal) {
  if (const auto plain = plain_u64(literal)) return plain;
  double value = 0;
  const auto [end, ec] = std::from_chars(literal.data(), literal.data() + literal.size(), value);
  constexpr double k_exact = 9007199254740992.0; // 2^53
  if (ec != std::errc{} || end != literal.data() + literal.size() || value < 0 || value > k_exact ||
      value != std::floor(value))
    return std::nullopt;
  return static_cast<std::uint64_t>(value);
}

} // namespace

const ShardIndex::Entry* ShardIndex::find(std::string_view tensor) const {
  const auto at =
      index_.find(tensor, [&](std::uint32_t i) -> std::string_view { return entries[i].tensor; });
  return at ? &entries[*at] : nullptr;
}

/// One reading of one index.
class ShardIndexReader {
public:
  ShardIndexReader(std::string_view text, std::string_view path, Profile profile)
      : text_(text), json_(text, k_max_depth), report_(std::string(path), profile) {}

  Checked<ShardIndex> run(const Limits& limits) &&;

private:
  bool fault() {
    report_.error("IX-01", json_.offset(), fmt::format("the index is no JSON: {}", json_.fault()));
    return false;
  }
  void duplicate() {
    report_.error("IX-01", json_.offset(),
                  fmt::format("member {} stands twice", quoted(json_.text())));
  }
  bool skip() {
    return skip_json_value(json_, [this] { duplicate(); }) || fault();
  }
  bool read_root();
  bool read_metadata();
  bool read_map();
  void read_file(std::string tensor, std::uint64_t offset);
  void number_files();

  std::string_view text_;
  JsonReader json_;
  Report report_;
  ShardIndex index_;
  std::vector<std::string> names_; ///< the file of each entry, until they are numbered
  bool map_seen_ = false;
};

bool ShardIndexReader::read_root() {
  NameIndex keys;
  std::vector<std::string> names;
  for (;;) {
    const JsonToken token = json_.next();
    if (token == JsonToken::fault) return fault();
    if (token == JsonToken::object_end) break;
    const std::string key(json_.text());
    const auto name_at = [&](std::uint32_t i) -> std::string_view { return names[i]; };
    const bool twice =
        keys.insert(key, static_cast<std::uint32_t>(names.size()), name_at).has_value();
    if (twice) duplicate();
    names.push_back(key);
    const JsonToken value = json_.next();
    if (value == JsonToken::fault) return fault();
    if (!twice && key == "weight_map") {
      if (!read_map()) return false;
    } else if (!twice && key == "metadata" && value == JsonToken::object_begin) {
      if (!read_metadata()) return false;
    } else if (!skip()) {
      return false;
    }
  }
  if (!map_seen_) report_.error("IX-02", 0, "the index has no 'weight_map'", std::string(k_rerun));
  return json_.next() == JsonToken::end || fault();
}

bool ShardIndexReader::read_metadata() {
  NameIndex keys;
  std::vector<std::string> names;
  for (;;) {
    const JsonToken token = json_.next();
    if (token == JsonToken::fault) return fault();
    if (token == JsonToken::object_end) return true;
    const std::string key(json_.text());
    const auto name_at = [&](std::uint32_t i) -> std::string_view { return names[i]; };
    if (keys.insert(key, static_cast<std::uint32_t>(names.size()), name_at)) duplicate();
    names.push_back(key);
    const JsonToken value = json_.next();
    if (value == JsonToken::fault) return fault();
    if (key == "total_size") {
      if (value == JsonToken::number) index_.total_size = integral(json_.text());
      if (!index_.total_size) {
        report_.warn("IX-10", json_.offset(),
                     fmt::format("total_size is {}, it must be a whole number of bytes",
                                 value == JsonToken::number ? escape_text(json_.text(), 40)
                                                            : std::string(describe(value))));
      }
    }
    if (!skip()) return false;
  }
}

bool ShardIndexReader::read_map() {
  map_seen_ = true;
  if (json_.token() != JsonToken::object_begin) {
    report_.error("IX-02", json_.offset(),
                  fmt::format("'weight_map' is {}, it must be an object", describe(json_.token())));
    return skip();
  }
  for (;;) {
    const JsonToken token = json_.next();
    if (token == JsonToken::fault) return fault();
    if (token == JsonToken::object_end) break;
    std::string tensor(json_.text());
    const std::uint64_t offset = json_.offset();
    const auto name_at = [&](std::uint32_t i) -> std::string_view {
      return index_.entries[i].tensor;
    };
    const auto position = static_cast<std::uint32_t>(index_.entries.size());
    const bool twice = index_.index_.insert(tensor, position, name_at).has_value();
    if (twice) duplicate();
    const JsonToken value = json_.next();
    if (value == JsonToken::fault) return fault();
    if (value != JsonToken::string) {
      report_.error("IX-03", json_.offset(),
                    fmt::format("the file of tensor {} is {}, it must be a string", quoted(tensor),
                                describe(value)));
      if (!skip()) return false;
    }
    read_file(std::move(tensor), offset);
  }
  if (index_.entries.empty())
    report_.error("IX-02", json_.offset(), "'weight_map' is empty", std::string(k_rerun));
  return true;
}

void ShardIndexReader::read_file(std::string tensor, std::uint64_t offset) {
  std::string file;
  if (json_.token() == JsonToken::string) {
    const std::string_view name = json_.text();
    if (const auto why = shard_name_fault(name)) {
      report_.error(
          "IX-04", json_.offset(),
          fmt::format("file name {} {}, allowed is one plain file name", quoted(name), *why),
          "do not use this repository: such a name leads outside of its folder");
    } else if (!name.ends_with(".safetensors")) {
      report_.error("IX-05", json_.offset(),
                    fmt::format("file name {} does not end in '.safetensors'", quoted(name)));
    } else {
      file = name;
    }
  }
  // An entry without a good file keeps its place, so that positions stay those of the map; the
  // report refuses the index anyway.
  index_.entries.push_back({std::move(tensor), 0, offset});
  names_.push_back(std::move(file));
}

void ShardIndexReader::number_files() {
  index_.files = names_;
  std::sort(index_.files.begin(), index_.files.end());
  index_.files.erase(std::unique(index_.files.begin(), index_.files.end()), index_.files.end());
  if (!index_.files.empty() && index_.files.front().empty())
    index_.files.erase(index_.files.begin());
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const auto at = std::lower_bound(index_.files.begin(), index_.files.end(), names_[i]);
    index_.entries[i].file = static_cast<std::uint32_t>(at - index_.files.begin());
  }
}

Checked<ShardIndex> ShardIndexReader::run(const Limits& limits) && {
  if (text_.size() > limits.index_bytes) {
    report_.error(
        "GN-08", 0,
        fmt::format("the index has {} bytes, the limit is {}", text_.size(), limits.index_bytes));
    return {std::nullopt, std::move(report_)};
  }
  const std::size_t good = utf8_valid_prefix(text_);
  if (good != text_.size() || text_.starts_with("\xEF\xBB\xBF")) {
    const bool mark = good == text_.size();
    report_.error("IX-01", mark ? 0 : good,
                  mark ? "the index starts with a byte order mark" : "the index is no UTF-8");
    return {std::nullopt, std::move(report_)};
  }
  const JsonToken token = json_.next();
  if (token == JsonToken::fault) {
    fault();
    return {std::nullopt, std::move(report_)};
  }
  if (token != JsonToken::object_begin) {
    report_.error("IX-02", json_.offset(),
                  fmt::format("the index is {}, it must be an object", describe(token)));
    return {std::nullopt, std::move(report_)};
  }
  if (!read_root()) return {std::nullopt, std::move(report_)};
  number_files();
  return {std::move(index_), std::move(report_)};
}

Checked<ShardIndex> check_shard_index(std::span<const std::byte> text, std::string_view path,
                                      Profile profile, const Limits& limits) {
  return ShardIndexReader({reinterpret_cast<const char*>(text.data()), text.size()}, path, profile)
      .run(limits);
}

} // namespace modeld::validate
