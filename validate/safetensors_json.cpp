// SPDX-License-Identifier: Apache-2.0
// The JSON of a safetensors header:
//   { "__metadata__"?: { name: string ... },
//     name: { "dtype": string, "shape": [integer ...], "data_offsets": [begin, end] } ... }
// read in one pass; rules ST-04 to ST-24 and ST-30 to ST-32.
#include "validate/escape.hpp"
#include "validate/safetensors_reader.hpp"

#include <fmt/format.h>

namespace modeld::validate {
namespace {

constexpr std::uint64_t k_max_integer = (std::uint64_t{1} << 48) - 1; ///< of the JSON schema, ST-22
constexpr std::size_t k_max_rank = 64;
constexpr std::size_t k_max_name = 4096;
/// The shortest entry has 49 bytes of JSON (validation.md 0.2.6), so a count is bounded by those.
constexpr std::size_t k_min_entry_bytes = 49;

} // namespace

SafetensorsReader::SafetensorsReader(std::span<const std::byte> head, std::uint64_t file_size,
                                     std::string_view path, Profile profile, const Limits& limits)
    : head_(head), file_size_(file_size), limits_(limits), report_(std::string(path), profile) {}

bool SafetensorsReader::json_fault() {
  report_.error(json_.too_deep() ? "ST-08" : "ST-07", here(),
                fmt::format("the header is no JSON object as it must be: {}", json_.fault()));
  return false;
}

bool SafetensorsReader::begin_json() {
  if (const std::size_t good = utf8_valid_prefix(text_); good != text_.size()) {
    report_.error("ST-04", 8 + good,
                  fmt::format("byte 0x{:02X} in the header is no UTF-8",
                              static_cast<unsigned char>(text_[good])));
    return false;
  }
  if (text_.starts_with("\xEF\xBB\xBF")) {
    report_.error("ST-04", 8, "the header starts with a byte order mark, it must start with '{'");
    return false;
  }
  json_ = JsonReader(text_, limits_.safetensors_depth);
  const JsonToken token = json_.next();
  if (token == JsonToken::fault) return json_fault();
  if (token != JsonToken::object_begin) {
    report_.error("ST-07", here(),
                  fmt::format("the header is {}, it must be an object", describe(token)));
    return false;
  }
  if (json_.offset() != 0) {
    report_.add("ST-05", error_if_strict(report_.profile()), 8,
                fmt::format("the header starts with {} bytes of white space, it must start with "
                            "'{{'",
                            json_.offset()));
  }
  header_.tensors.reserve(text_.size() / (2 * k_min_entry_bytes));
  return true;
}

bool SafetensorsReader::end_json() {
  const std::size_t end = json_.end_offset();
  if (json_.next() != JsonToken::end) return json_fault();
  if (const std::size_t bad = text_.find_first_not_of(' ', end); bad != std::string_view::npos) {
    report_.warn("ST-06", 8 + bad,
                 fmt::format("padding byte 0x{:02X} behind the header's object, allowed are spaces",
                             static_cast<unsigned char>(text_[bad])));
  }
  return true;
}

bool SafetensorsReader::read_root() {
  bool metadata_seen = false;
  for (;;) {
    const JsonToken token = json_.next();
    if (token == JsonToken::fault) return json_fault();
    if (token == JsonToken::object_end) return true;
    if (json_.text() == "__metadata__") {
      if (metadata_seen) report_.error("ST-10", here(), "'__metadata__' stands twice");
      metadata_seen = true;
      if (!read_metadata()) return false;
      continue;
    }
    if (header_.tensors.size() >= limits_.safetensors_tensors) {
      report_.error("GN-08", here(),
                    fmt::format("more tensors than the limit of {}", limits_.safetensors_tensors));
      return false;
    }
    if (!read_entry()) return false;
  }
}

void SafetensorsReader::read_name() {
  const std::string_view name = json_.text();
  if (report_.full()) return;
  if (name.empty()) {
    report_.warn("ST-13", here(), "a tensor has an empty name");
    return;
  }
  const TextTraits traits = text_traits(name);
  if (traits.control) {
    report_.add("ST-13", error_if_strict(report_.profile()), here(),
                fmt::format("tensor name {} holds a control character", quoted(name)));
  }
  if (traits.bidi) {
    report_.warn("ST-13", here(),
                 fmt::format("tensor name {} holds a bidirectional control", quoted(name)));
  }
  if (name.size() > k_max_name) {
    report_.warn("ST-13", here(),
                 fmt::format("tensor name {} has {} bytes, more than {}", quoted(name), name.size(),
                             k_max_name));
  }
}

bool SafetensorsReader::read_metadata() {
  const JsonToken token = json_.next();
  if (token == JsonToken::fault) return json_fault();
  if (token == JsonToken::null) {
    report_.add("ST-11", error_if_strict(report_.profile()), here(),
                "'__metadata__' is null, it must be an object or absent");
    return true;
  }
  if (token != JsonToken::object_begin) {
    report_.error("ST-11", here(),
                  fmt::format("'__metadata__' is {}, it must be an object", describe(token)));
    return skip_value();
  }
  NameIndex keys;
  const std::size_t first = header_.metadata.size();
  for (;;) {
    const JsonToken member = json_.next();
    if (member == JsonToken::fault) return json_fault();
    if (member == JsonToken::object_end) return true;
    std::string key(json_.text());
    const auto position = static_cast<std::uint32_t>(header_.metadata.size() - first);
    const auto name_at = [&](std::uint32_t i) -> std::string_view {
      return header_.metadata[first + i].first;
    };
    if (keys.insert(key, position, name_at)) {
      report_.error("ST-10", here(), fmt::format("metadata key {} stands twice", quoted(key)));
    }
    const JsonToken value = json_.next();
    if (value == JsonToken::fault) return json_fault();
    if (value != JsonToken::string) {
      report_.error("ST-12", here(),
                    fmt::format("metadata value of {} is {}, it must be a string", quoted(key),
                                describe(value)));
      if (!skip_value()) return false;
      header_.metadata.emplace_back(std::move(key), std::string());
      continue;
    }
    header_.metadata.emplace_back(std::move(key), std::string(json_.text()));
  }
}

bool SafetensorsReader::skip_value() {
  const auto duplicate = [this] {
    report_.error("ST-10", here(), fmt::format("member {} stands twice", quoted(json_.text())));
  };
  return skip_json_value(json_, duplicate) || json_fault();
}

bool SafetensorsReader::add_key(std::string_view name, NameIndex& keys,
                                std::vector<std::string>& names) {
  const auto name_at = [&](std::uint32_t i) -> std::string_view { return names[i]; };
  if (keys.insert(name, static_cast<std::uint32_t>(names.size()), name_at)) {
    report_.error("ST-10", here(), fmt::format("member {} stands twice", quoted(name)));
    return false;
  }
  names.emplace_back(name);
  return true;
}

bool SafetensorsReader::read_entry() {
  read_name();
  Entry entry;
  entry.tensor.name = json_.text();
  entry.tensor.header_offset = here();
  const auto position = static_cast<std::uint32_t>(header_.tensors.size());
  const auto name_at = [&](std::uint32_t i) -> std::string_view { return header_.tensors[i].name; };
  if (header_.index_.insert(entry.tensor.name, position, name_at)) {
    report_.error("ST-10", here(),
                  fmt::format("tensor {} stands twice", quoted(entry.tensor.name)));
  }
  const JsonToken token = json_.next();
  if (token == JsonToken::fault) return json_fault();
  if (token != JsonToken::object_begin) {
    report_.error("ST-14", here(),
                  fmt::format("the entry of tensor {} is {}, it must be an object",
                              quoted(entry.tensor.name), describe(token)));
    ranges_known_ = false;
    if (!skip_value()) return false;
  } else if (!read_entry_members(entry)) {
    return false;
  }
  header_.tensors.push_back(std::move(entry.tensor));
  return true;
}

bool SafetensorsReader::read_entry_members(Entry& entry) {
  NameIndex other_keys;
  std::vector<std::string> other_names;
  for (;;) {
    const JsonToken token = json_.next();
    if (token == JsonToken::fault) return json_fault();
    if (token == JsonToken::object_end) break;
    const std::string_view key = json_.text();
    bool* seen = key == "dtype"          ? &entry.dtype
                 : key == "shape"        ? &entry.shape
                 : key == "data_offsets" ? &entry.offsets
                                         : nullptr;
    if (seen == nullptr) {
      if (add_key(key, other_keys, other_names)) {
        report_.add("ST-16", error_if_strict(report_.profile()), here(),
                    fmt::format("tensor {} has a member {}, allowed are dtype, shape and "
                                "data_offsets",
                                quoted(entry.tensor.name), quoted(key)));
      }
      const JsonToken value = json_.next();
      if (value == JsonToken::fault) return json_fault();
      if (!skip_value()) return false;
      continue;
    }
    if (*seen) {
      report_.error("ST-10", here(),
                    fmt::format("tensor {} has {} twice", quoted(entry.tensor.name), quoted(key)));
    }
    *seen = true;
    const bool read = seen == &entry.dtype   ? read_dtype(entry)
                      : seen == &entry.shape ? read_shape(entry)
                                             : read_offsets(entry);
    if (!read) return false;
  }
  for (const auto& [seen, name] :
       {std::pair{entry.dtype, "dtype"}, {entry.shape, "shape"}, {entry.offsets, "data_offsets"}}) {
    if (seen) continue;
    report_.error("ST-15", entry.tensor.header_offset,
                  fmt::format("tensor {} has no {}", quoted(entry.tensor.name), name));
    entry.whole = false;
  }
  if (!entry.offsets) ranges_known_ = false;
  if (entry.whole) check_size(entry);
  return true;
}

bool SafetensorsReader::read_dtype(Entry& entry) {
  const JsonToken token = json_.next();
  if (token == JsonToken::fault) return json_fault();
  if (token == JsonToken::string) {
    if (const auto* row = find_safetensors_dtype(json_.text())) {
      entry.tensor.dtype = row->dtype;
      return true;
    }
    report_.error("ST-20", here(),
                  fmt::format("tensor {} has the unknown dtype {}", quoted(entry.tensor.name),
                              quoted(json_.text())),
                  "the file may need a newer reader; its size is never guessed");
  } else {
    report_.error("ST-20", here(),
                  fmt::format("dtype of tensor {} is {}, it must be a string",
                              quoted(entry.tensor.name), describe(token)));
  }
  entry.whole = false;
  return skip_value();
}

std::uint64_t SafetensorsReader::read_integer(std::string_view what, bool& ok) {
  if (json_.token() == JsonToken::number) {
    const auto value = plain_u64(json_.text());
    if (value && *value <= k_max_integer) return *value;
    report_.error("ST-22", here(),
                  fmt::format("{} is {}, allowed are plain whole numbers from 0 to 2^48-1", what,
                              escape_text(json_.text(), 40)));
  }
  ok = false;
  return 0;
}

bool SafetensorsReader::read_shape(Entry& entry) {
  const JsonToken token = json_.next();
  if (token == JsonToken::fault) return json_fault();
  const std::uint64_t start = here();
  if (token != JsonToken::array_begin) {
    report_.error("ST-21", start,
                  fmt::format("shape of tensor {} is {}, it must be an array of integers",
                              quoted(entry.tensor.name), describe(token)));
    entry.whole = false;
    return skip_value();
  }
  entry.tensor.shape.clear();
  std::size_t rank = 0;
  for (;; ++rank) {
    const JsonToken dim = json_.next();
    if (dim == JsonToken::fault) return json_fault();
    if (dim == JsonToken::array_end) break;
    if (dim != JsonToken::number) {
      report_.error("ST-21", here(),
                    fmt::format("a dimension of tensor {} is {}, it must be an integer",
                                quoted(entry.tensor.name), describe(dim)));
      entry.whole = false;
      if (!skip_value()) return false;
      continue;
    }
    if (rank >= k_max_rank) continue;
    entry.tensor.shape.push_back(read_integer("a dimension", entry.whole));
  }
  if (rank > k_max_rank) {
    report_.error("ST-23", start,
                  fmt::format("tensor {} has {} dimensions, allowed are at most {}",
                              quoted(entry.tensor.name), rank, k_max_rank));
    entry.whole = false;
  }
  return true;
}

bool SafetensorsReader::read_offsets(Entry& entry) {
  const JsonToken token = json_.next();
  if (token == JsonToken::fault) return json_fault();
  const std::uint64_t start = here();
  bool good = token == JsonToken::array_begin;
  std::size_t count = 0;
  std::uint64_t values[2] = {0, 0};
  if (good) {
    for (;; ++count) {
      const JsonToken item = json_.next();
      if (item == JsonToken::fault) return json_fault();
      if (item == JsonToken::array_end) break;
      bool integer = true;
      const std::uint64_t value = read_integer("an offset", integer);
      if (item != JsonToken::number) good = false;
      if (!integer) entry.whole = ranges_known_ = false;
      if (!skip_value()) return false;
      if (count < 2) values[count] = value;
    }
  }
  if (!good || count != 2) {
    report_.error(
        "ST-30", start,
        fmt::format("data_offsets of tensor {} is {}, it must be an array of two integers",
                    quoted(entry.tensor.name),
                    token == JsonToken::array_begin ? fmt::format("an array of {}", count)
                                                    : std::string(describe(token))));
    entry.whole = ranges_known_ = false;
    return token == JsonToken::array_begin || skip_value();
  }
  entry.tensor.begin = values[0];
  entry.tensor.end = values[1];
  if (entry.tensor.begin > entry.tensor.end) {
    report_.error("ST-31", start,
                  fmt::format("tensor {} begins at {} behind its end at {}",
                              quoted(entry.tensor.name), values[0], values[1]));
    entry.whole = ranges_known_ = false;
  }
  return true;
}

} // namespace modeld::validate
