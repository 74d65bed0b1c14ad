// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/tensor_type.hpp"
#include "validate/finding.hpp"
#include "validate/name_index.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

// GGUF v1, v2 and v3 in both byte orders. Rules GG-01 to GG-46 (validation.md 2).
// Everything here is a view into the file's bytes and lives as long as they do.

namespace modeld::validate {

/// Types of metadata values; the numbers go to disk.
enum class GgufType : std::uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12,
};
/// "u8", ..., "bool", "str", "arr".
std::string_view name(GgufType type);
/// Bytes of a scalar; 0 for string and array.
std::uint32_t scalar_bytes(GgufType type);
constexpr bool is_integer(GgufType type) {
  return type <= GgufType::i32 || type == GgufType::u64 || type == GgufType::i64;
}

/// How numbers and lengths are written in one file.
struct GgufEncoding {
  bool big_endian = false;
  bool short_lengths = false; ///< version 1: counts and lengths of four bytes

  std::uint16_t u16(const std::byte* at) const { return number<std::uint16_t>(at); }
  std::uint32_t u32(const std::byte* at) const { return number<std::uint32_t>(at); }
  std::uint64_t u64(const std::byte* at) const { return number<std::uint64_t>(at); }
  std::uint64_t length(const std::byte* at) const { return short_lengths ? u32(at) : u64(at); }
  std::size_t length_bytes() const { return short_lengths ? 4 : 8; }

private:
  // Inline: a header has hundreds of thousands of lengths.
  template <class T>
  T number(const std::byte* at) const {
    T value = 0;
    std::memcpy(&value, at, sizeof(T));
    if (big_endian == (std::endian::native == std::endian::big)) return value;
    T turned = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      const auto byte = static_cast<std::uint64_t>(value) >> (8 * i) & 0xFFU;
      turned = static_cast<T>(turned | static_cast<T>(byte << (8 * (sizeof(T) - 1 - i))));
    }
    return turned;
  }
};

/// The strings of an array in order: `for (std::string_view s : value.strings())`. Bounds were
/// checked when the file was read. A single trailing NUL of version 1 files is left out.
class GgufStrings {
public:
  class Iterator {
  public:
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;
    std::string_view operator*() const;
    Iterator& operator++();
    Iterator operator++(int) {
      auto old = *this;
      ++*this;
      return old;
    }
    bool operator==(const Iterator& other) const { return left_ == other.left_; }

  private:
    friend GgufStrings;
    const std::byte* at_ = nullptr;
    std::uint64_t left_ = 0;
    GgufEncoding encoding_;
  };
  Iterator begin() const;
  Iterator end() const { return {}; }
  std::uint64_t size() const { return count_; }

private:
  friend struct GgufValueView;
  const std::byte* data_ = nullptr;
  std::uint64_t count_ = 0;
  GgufEncoding encoding_;
};

/// A metadata value in place. For arrays `element` and `count` are set and `bytes` are all the
/// elements as they are on disk; nothing is copied until asked.
struct GgufValueView {
  GgufType type = GgufType::u8;
  GgufType element = GgufType::u8; ///< of an array
  std::uint64_t count = 0;         ///< of an array
  std::span<const std::byte> bytes;
  GgufEncoding encoding;
  std::uint64_t offset = 0; ///< of `bytes` in the file

  bool is_array() const { return type == GgufType::array; }
  /// Any scalar integer type whose value fits; nothing otherwise.
  std::optional<std::uint64_t> as_u64() const;
  std::optional<std::int64_t> as_i64() const;
  /// f32 or f64.
  std::optional<double> as_f64() const;
  std::optional<bool> as_bool() const;
  std::optional<std::string_view> as_string() const;

  /// Element i < count of an array as a scalar view; not for strings.
  GgufValueView at(std::uint64_t i) const;
  /// Of an array of strings; empty for any other.
  GgufStrings strings() const;
};

struct GgufKvView {
  std::string_view key;
  GgufValueView value;
  std::uint64_t offset = 0; ///< of the key's length in the file
};

struct GgufTensorInfo {
  std::string_view name;
  std::uint32_t n_dims = 0;
  std::array<std::uint64_t, 4> ne{1, 1, 1, 1}; ///< fastest dimension first, ones behind n_dims
  TensorType type = TensorType::f32;
  std::uint64_t offset = 0;      ///< from data_start
  std::uint64_t bytes = 0;       ///< without padding
  std::uint64_t info_offset = 0; ///< of this entry in the file

  std::uint64_t elements() const { return ne[0] * ne[1] * ne[2] * ne[3]; } ///< checked on reading
  std::uint64_t rows() const { return ne[1] * ne[2] * ne[3]; }
};

/// A GGUF file's description. Where the report has no error: keys and tensor names are unique,
/// every tensor lies inside the file, and the data has no gap and no overlap.
class GgufHeader {
public:
  std::uint32_t version = 3;
  GgufEncoding encoding;
  std::vector<GgufKvView> kv;
  std::vector<GgufTensorInfo> tensors;
  std::uint32_t alignment = 32;
  std::uint64_t metadata_end = 0; ///< first byte behind the last tensor info
  std::uint64_t data_start = 0;   ///< aligned; metadata_end where there is no tensor
  std::uint64_t data_end = 0;     ///< where the last tensor's padding ends; may exceed the file
  std::uint64_t file_size = 0;

  const GgufValueView* find(std::string_view key) const;
  const GgufTensorInfo* find_tensor(std::string_view name) const;
  std::span<const std::byte> data(std::span<const std::byte> file,
                                  const GgufTensorInfo& tensor) const {
    return file.subspan(static_cast<std::size_t>(data_start + tensor.offset),
                        static_cast<std::size_t>(tensor.bytes));
  }

private:
  friend class GgufReader;
  NameIndex keys_;
  NameIndex names_;
};

/// Reads and checks the structure of a file: GG-01 to GG-46. `file` is the whole mapped file, or
/// its start up to the data (then `file_size` is larger; GG-44 and GG-45 look only at what is
/// there). Touches no tensor data. Costs time in proportion to the metadata only.
Checked<GgufHeader> check_gguf(std::span<const std::byte> file, std::uint64_t file_size,
                               std::string_view path, Profile profile = Profile::strict,
                               const Limits& limits = {});

/// The same over a whole mapped file, for a caller that wants the description or one reason.
Result<GgufHeader> read_gguf(std::span<const std::byte> file, std::string_view path,
                             Profile profile = Profile::strict);

} // namespace modeld::validate
