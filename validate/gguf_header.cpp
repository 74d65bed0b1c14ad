// SPDX-License-Identifier: Apache-2.0
// "GGUF", u32 version, tensor count, key count, then the keys:
//   key: length and bytes; u32 type; value
//   array: u32 element type, count, elements; arrays of arrays are refused
// Counts and lengths are u32 in version 1 and u64 after it. Versions 2 and 3 differ only in that 3
// may be big-endian. Rules GG-01 to GG-17.
#include "validate/escape.hpp"
#include "validate/gguf_reader.hpp"

#include <fmt/format.h>

namespace modeld::validate {
namespace {

constexpr std::uint64_t k_max_key = 65'535; ///< of the format's own description
constexpr std::uint32_t k_last_version = 3;

bool is_key_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/// Words of lower-case letters, digits, '_' and '-', joined by dots.
bool is_conventional(std::string_view key) {
  bool word = false;
  for (const char c : key) {
    if (c == '.') {
      if (!word) return false;
      word = false;
    } else if (is_key_character(c)) {
      word = true;
    } else {
      return false;
    }
  }
  return word;
}

/// What a reader that stops at a NUL sees.
std::string_view c_string(std::string_view text) {
  return text.substr(0, text.find('\0'));
}

} // namespace

GgufReader::GgufReader(std::span<const std::byte> file, std::uint64_t file_size,
                       std::string_view path, Profile profile, const Limits& limits)
    : file_(file), file_size_(file_size), limits_(limits), report_(std::string(path), profile) {
  header_.file_size = file_size;
}

bool GgufReader::need(std::uint64_t bytes, std::string_view rule, std::string_view what) {
  if (bytes <= left()) return true;
  if (bytes <= file_size_ - at_) {
    report_.error("GN-07", at_,
                  fmt::format("{} needs {} bytes, only the first {} of the file's {} could be read",
                              what, bytes, file_.size(), file_size_));
    return false;
  }
  report_.error(rule, at_,
                fmt::format("{} takes {} bytes, the file has {} left", what, bytes, left()),
                "the file was cut short or is damaged; download it again");
  return false;
}

bool GgufReader::read_header() {
  if (file_size_ == 0) {
    report_.error("GN-02", 0, "the file is empty", "download it again");
    return false;
  }
  if (!need(4, "GG-02", "the magic")) return false;
  const std::string_view magic{reinterpret_cast<const char*>(file_.data()), 4};
  if (magic != "GGUF") {
    report_.error("GG-01", 0,
                  fmt::format("the file starts with {}, it must start with 'GGUF'{}", quoted(magic),
                              magic == "FUGG" ? "; even big-endian files do" : ""));
    return false;
  }
  at_ = 4;
  return read_version() && read_counts();
}

bool GgufReader::read_version() {
  if (!need(4, "GG-02", "the version")) return false;
  GgufEncoding& encoding = header_.encoding;
  header_.version = encoding.u32(here());
  if ((header_.version & 0xFFFF) == 0 && header_.version != 0) {
    encoding.big_endian = true;
    header_.version = encoding.u32(here());
  }
  if (header_.version == 0 || header_.version > k_last_version) {
    report_.error("GG-03", at_,
                  fmt::format("version is {}, known are 1 to {}", header_.version, k_last_version));
    return false;
  }
  if (header_.version == 1) {
    encoding.short_lengths = true;
    report_.warn("GG-03", at_, "version 1 is not supported by runtimes since November 2023",
                 "convert the model again");
  }
  if (encoding.big_endian) {
    report_.note("GG-04", at_, "the file is big-endian, a little-endian runtime refuses it");
    if (header_.version < 3)
      report_.warn(
          "GG-04", at_,
          fmt::format("big-endian files came with version 3, this says {}", header_.version));
  }
  at_ += 4;
  return true;
}

bool GgufReader::check_count(std::string_view what, std::uint64_t count, std::uint64_t limit,
                             std::uint64_t least_bytes) {
  const std::uint64_t remaining = file_size_ - at_;
  if (count > remaining / least_bytes) {
    report_.error("GG-05", at_,
                  fmt::format("{} {} take at least {} bytes each, the file has {} left", count,
                              what, least_bytes, remaining));
    return false;
  }
  if (count > limit) {
    report_.error("GG-05", at_, fmt::format("{} {}, allowed are {}", count, what, limit));
    report_.error("GN-08", at_, fmt::format("the limit of {} {} is exceeded", limit, what));
    return false;
  }
  return true;
}

bool GgufReader::read_counts() {
  const std::size_t bytes = header_.encoding.length_bytes();
  if (!need(2 * bytes, "GG-02", "the pair of counts")) return false;
  tensor_count_ = header_.encoding.length(here());
  if (!check_count("tensors", tensor_count_, limits_.gguf_tensors, min_tensor_bytes()))
    return false;
  at_ += bytes;
  kv_count_ = header_.encoding.length(here());
  if (!check_count("keys", kv_count_, limits_.gguf_kv, min_kv_bytes())) return false;
  at_ += bytes;
  return true;
}

bool GgufReader::read_string(std::string_view what, std::string_view& text) {
  const std::size_t bytes = header_.encoding.length_bytes();
  if (!need(bytes, "GG-15", what)) return false;
  const std::uint64_t length = header_.encoding.length(here());
  at_ += bytes;
  if (!need(length, "GG-15", what)) return false;
  if (length > limits_.gguf_string_bytes) {
    report_.error(
        "GG-15", at_,
        fmt::format("{} has {} bytes, allowed are {}", what, length, limits_.gguf_string_bytes));
    report_.error(
        "GN-08", at_,
        fmt::format("the limit of {} bytes a string is exceeded", limits_.gguf_string_bytes));
    return false;
  }
  text = {reinterpret_cast<const char*>(here()), static_cast<std::size_t>(length)};
  at_ += static_cast<std::size_t>(length);
  return true;
}

bool GgufReader::read_kv() {
  header_.kv.reserve(static_cast<std::size_t>(kv_count_));
  for (std::uint64_t i = 0; i < kv_count_; ++i) {
    GgufKvView item;
    if (!read_key(item) || !read_value(item)) return false;
    if (at_ > limits_.gguf_metadata_bytes) {
      report_.error("GN-08", at_,
                    fmt::format("the limit of {} bytes of metadata is exceeded",
                                limits_.gguf_metadata_bytes));
      return false;
    }
    header_.kv.push_back(item);
  }
  return true;
}

bool GgufReader::read_key(GgufKvView& item) {
  item.offset = at_;
  if (!read_string("a key", item.key)) return false;
  if (header_.encoding.short_lengths && item.key.ends_with('\0')) item.key.remove_suffix(1);
  check_key(item);
  const auto name_at = [&](std::uint32_t i) { return c_string(header_.kv[i].key); };
  const auto position = static_cast<std::uint32_t>(header_.kv.size());
  if (header_.keys_.insert(c_string(item.key), position, name_at) && !report_.full())
    report_.error("GG-13", item.offset, fmt::format("key {} stands twice", quoted(item.key)));
  return true;
}

void GgufReader::check_key(const GgufKvView& item) {
  if (report_.full()) return;
  if (item.key.empty()) {
    report_.error("GG-10", item.offset, "a key is empty");
    return;
  }
  if (item.key.size() > k_max_key) {
    report_.error("GG-11", item.offset,
                  fmt::format("key {} has {} bytes, allowed are {}", quoted(item.key),
                              item.key.size(), k_max_key));
  }
  bool printable = true;
  bool nul = false;
  for (const char c : item.key) {
    printable &= c > 0x20 && c < 0x7F;
    nul |= c == '\0';
  }
  if (!printable) {
    report_.add("GG-12", nul ? Severity::error : error_if_strict(report_.profile()), item.offset,
                fmt::format("key {} holds bytes that are not printable ASCII", quoted(item.key)));
  } else if (!is_conventional(item.key)) {
    report_.warn(
        "GG-12", item.offset,
        fmt::format("key {} is not made of lower-case words joined by dots", quoted(item.key)));
  }
}

bool GgufReader::read_value(GgufKvView& item) {
  GgufValueView& value = item.value;
  value.encoding = header_.encoding;
  if (!need(4, "GG-14", "a value's type")) return false;
  const std::uint32_t type = header_.encoding.u32(here());
  if (type > static_cast<std::uint32_t>(GgufType::f64)) {
    report_.error("GG-14", at_,
                  fmt::format("value of key {} has the type {}, known are 0 to 12",
                              quoted(item.key), static_cast<std::int32_t>(type)));
    return false;
  }
  if (header_.version == 1 && type > static_cast<std::uint32_t>(GgufType::array)) {
    report_.warn("GG-14", at_,
                 fmt::format("value of key {} has the type {}, which came after version 1",
                             quoted(item.key), type));
  }
  at_ += 4;
  value.type = static_cast<GgufType>(type);
  if (value.type == GgufType::array) return read_array(item);
  if (value.type == GgufType::string) {
    std::string_view text;
    if (!read_string("a string", text)) return false;
    value.bytes = std::as_bytes(std::span(text));
    value.offset = at_ - text.size();
    check_string(item);
    return true;
  }
  const std::uint32_t size = scalar_bytes(value.type);
  if (!need(size, "GG-14", "a value")) return false;
  value.bytes = file_.subspan(at_, size);
  value.offset = at_;
  at_ += size;
  check_bools(item);
  check_floats(item);
  return true;
}

bool GgufReader::read_array(GgufKvView& item) {
  GgufValueView& value = item.value;
  const std::size_t length = header_.encoding.length_bytes();
  if (!need(4 + length, "GG-17", "an array's type and count")) return false;
  const std::uint32_t element = header_.encoding.u32(here());
  if (element > static_cast<std::uint32_t>(GgufType::f64) ||
      element == static_cast<std::uint32_t>(GgufType::array)) {
    report_.error(
        "GG-17", at_,
        fmt::format("array {} has elements of type {}{}", quoted(item.key),
                    static_cast<std::int32_t>(element),
                    element == 9 ? ": arrays of arrays are refused" : ", which is unknown"));
    return false;
  }
  value.element = static_cast<GgufType>(element);
  value.count = header_.encoding.length(here() + 4);
  const std::uint64_t least =
      value.element == GgufType::string ? length : scalar_bytes(value.element);
  const std::uint64_t remaining = file_size_ - at_ - 4 - length;
  if (value.count > remaining / least) {
    report_.error("GG-17", at_ + 4,
                  fmt::format("array {} has {} elements of at least {} bytes, the file has {} left",
                              quoted(item.key), value.count, least, remaining));
    return false;
  }
  if (value.count > limits_.gguf_array_elements) {
    report_.error("GG-17", at_ + 4,
                  fmt::format("array {} has {} elements, allowed are {}", quoted(item.key),
                              value.count, limits_.gguf_array_elements));
    report_.error(
        "GN-08", at_ + 4,
        fmt::format("the limit of {} elements an array is exceeded", limits_.gguf_array_elements));
    return false;
  }
  at_ += 4 + length;
  value.offset = at_;
  if (value.element == GgufType::string) {
    if (!walk_strings(item, value.count)) return false;
    value.bytes = file_.subspan(static_cast<std::size_t>(value.offset),
                                at_ - static_cast<std::size_t>(value.offset));
    return true;
  }
  if (!need(value.count * least, "GG-17", "an array")) return false;
  value.bytes = file_.subspan(at_, static_cast<std::size_t>(value.count * least));
  at_ += value.bytes.size();
  check_bools(item);
  check_floats(item);
  return true;
}

Checked<GgufHeader> GgufReader::run() && {
  if (!read_header() || !read_kv()) return {std::nullopt, std::move(report_)};
  read_alignment();
  if (!read_tensors()) return {std::nullopt, std::move(report_)};
  header_.metadata_end = at_;
  check_architecture();
  check_known_types();
  check_quantization_version();
  if (layout_known_) check_layout();
  return {std::move(header_), std::move(report_)};
}

} // namespace modeld::validate
