// SPDX-License-Identifier: Apache-2.0
#include "validate/gguf.hpp"

#include "validate/gguf_reader.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

namespace modeld::validate {
namespace {

struct TypeInfo {
  std::string_view name;
  std::uint32_t bytes;
};

constexpr std::array<TypeInfo, 13> k_types{{{"u8", 1},
                                            {"i8", 1},
                                            {"u16", 2},
                                            {"i16", 2},
                                            {"u32", 4},
                                            {"i32", 4},
                                            {"f32", 4},
                                            {"bool", 1},
                                            {"str", 0},
                                            {"arr", 0},
                                            {"u64", 8},
                                            {"i64", 8},
                                            {"f64", 8}}};

std::string_view without_trailing_nul(std::string_view text, const GgufEncoding& encoding) {
  // Writers of August 2023 counted the terminator in.
  if (encoding.short_lengths && !text.empty() && text.back() == '\0') text.remove_suffix(1);
  return text;
}

std::string_view string_at(const std::byte* at, const GgufEncoding& encoding) {
  const auto length = static_cast<std::size_t>(encoding.length(at));
  const auto* text = reinterpret_cast<const char*>(at + encoding.length_bytes());
  return without_trailing_nul({text, length}, encoding);
}

} // namespace

std::string_view name(GgufType type) {
  return k_types[static_cast<std::size_t>(type)].name;
}

std::uint32_t scalar_bytes(GgufType type) {
  return k_types[static_cast<std::size_t>(type)].bytes;
}

std::string_view GgufStrings::Iterator::operator*() const {
  return string_at(at_, encoding_);
}

GgufStrings::Iterator& GgufStrings::Iterator::operator++() {
  at_ += encoding_.length_bytes() + static_cast<std::size_t>(encoding_.length(at_));
  --left_;
  return *this;
}

GgufStrings::Iterator GgufStrings::begin() const {
  Iterator it;
  it.at_ = data_;
  it.left_ = count_;
  it.encoding_ = encoding_;
  return it;
}

std::optional<std::int64_t> GgufValueView::as_i64() const {
  const std::byte* at = bytes.data();
  switch (type) {
  case GgufType::u8:
    return std::to_integer<std::int64_t>(*at);
  case GgufType::i8:
    return static_cast<std::int8_t>(std::to_integer<std::uint8_t>(*at));
  case GgufType::u16:
    return encoding.u16(at);
  case GgufType::i16:
    return static_cast<std::int16_t>(encoding.u16(at));
  case GgufType::u32:
    return encoding.u32(at);
  case GgufType::i32:
    return static_cast<std::int32_t>(encoding.u32(at));
  case GgufType::i64:
    return static_cast<std::int64_t>(encoding.u64(at));
  case GgufType::u64: {
    const std::uint64_t value = encoding.u64(at);
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return std::nullopt;
    return static_cast<std::int64_t>(value);
  }
  default:
    return std::nullopt;
  }
}

std::optional<std::uint64_t> GgufValueView::as_u64() const {
  if (type == GgufType::u64) return encoding.u64(bytes.data());
  const auto value = as_i64();
  if (!value || *value < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*value);
}

std::optional<double> GgufValueView::as_f64() const {
  if (type == GgufType::f32) return std::bit_cast<float>(encoding.u32(bytes.data()));
  if (type == GgufType::f64) return std::bit_cast<double>(encoding.u64(bytes.data()));
  return std::nullopt;
}

std::optional<bool> GgufValueView::as_bool() const {
  if (type != GgufType::boolean) return std::nullopt;
  return bytes[0] != std::byte{0};
}

std::optional<std::string_view> GgufValueView::as_string() const {
  if (type != GgufType::string) return std::nullopt;
  return without_trailing_nul({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                              encoding);
}

GgufValueView GgufValueView::at(std::uint64_t i) const {
  const std::size_t size = scalar_bytes(element);
  GgufValueView view;
  view.type = element;
  view.encoding = encoding;
  view.bytes = bytes.subspan(static_cast<std::size_t>(i) * size, size);
  view.offset = offset + i * size;
  return view;
}

GgufStrings GgufValueView::strings() const {
  GgufStrings list;
  if (!is_array() || element != GgufType::string) return list;
  list.data_ = bytes.data();
  list.count_ = count;
  list.encoding_ = encoding;
  return list;
}

const GgufValueView* GgufHeader::find(std::string_view key) const {
  const auto at = keys_.find(key, [&](std::uint32_t i) { return kv[i].key; });
  return at ? &kv[*at].value : nullptr;
}

const GgufTensorInfo* GgufHeader::find_tensor(std::string_view name) const {
  const auto at = names_.find(name, [&](std::uint32_t i) { return tensors[i].name; });
  return at ? &tensors[*at] : nullptr;
}

Checked<GgufHeader> check_gguf(std::span<const std::byte> file, std::uint64_t file_size,
                               std::string_view path, Profile profile, const Limits& limits) {
  return GgufReader(file, file_size, path, profile, limits).run();
}

Result<GgufHeader> read_gguf(std::span<const std::byte> file, std::string_view path,
                             Profile profile) {
  return check_gguf(file, file.size(), path, profile).take();
}

} // namespace modeld::validate
