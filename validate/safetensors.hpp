// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "validate/finding.hpp"
#include "validate/name_index.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// safetensors: u64 little-endian N, N bytes of JSON, data. Rules ST-01 to ST-38 (validation.md 1).

namespace modeld::validate {

/// Element types of safetensors, in the order of the specification's table.
enum class SafetensorsDtype : std::uint8_t {
  boolean,
  u8,
  i8,
  f8_e5m2,
  f8_e4m3,
  f8_e8m0,
  f8_e4m3fnuz,
  f8_e5m2fnuz,
  f4,
  f6_e2m3,
  f6_e3m2,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  c64,
  i64,
  u64,
  f64,
};

struct SafetensorsDtypeInfo {
  SafetensorsDtype dtype;
  std::string_view name;  ///< as in the header: "BF16"
  std::uint32_t bits;     ///< of one logical element
  std::string_view since; ///< release of safetensors that knows it, where newer than 0.5.3
};

const SafetensorsDtypeInfo& info(SafetensorsDtype dtype);
/// Exact case; null for a name that is not in the table.
const SafetensorsDtypeInfo* find_safetensors_dtype(std::string_view name);
std::span<const SafetensorsDtypeInfo> all_safetensors_dtypes();

struct SafetensorsTensor {
  std::string name;
  SafetensorsDtype dtype = SafetensorsDtype::f32;
  std::vector<std::uint64_t> shape; ///< slowest dimension first; empty means one element
  std::uint64_t begin = 0;          ///< offsets from data_start
  std::uint64_t end = 0;
  std::uint64_t header_offset = 0; ///< where the name stands in the file

  std::uint64_t bytes() const { return end - begin; }
  /// Checked not to overflow.
  std::uint64_t elements() const;
};

/// A header that has been read and, where the report has no error, proved: every range lies inside
/// the file, fits its shape and type, and all together tile the data exactly.
class SafetensorsHeader {
public:
  std::vector<SafetensorsTensor> tensors; ///< in the order of the header
  std::vector<std::pair<std::string, std::string>> metadata;
  std::uint64_t data_start = 0; ///< 8 + N

  /// Null where there is no such tensor. Constant time.
  const SafetensorsTensor* find(std::string_view name) const;
  /// The bytes of one of `tensors` in the whole mapped file.
  std::span<const std::byte> data(std::span<const std::byte> file,
                                  const SafetensorsTensor& tensor) const {
    return file.subspan(static_cast<std::size_t>(data_start + tensor.begin),
                        static_cast<std::size_t>(tensor.bytes()));
  }
  const std::string* metadata_value(std::string_view key) const;

private:
  friend class SafetensorsReader;
  NameIndex index_;
};

/// Largest header length that the format allows, inclusive.
inline constexpr std::uint64_t k_safetensors_max_header = 100'000'000;

/// The length of the header out of a file's first eight bytes: how much of a remote file to fetch.
/// malformed (rule ST-03) above the format's limit.
Result<std::uint64_t> safetensors_header_length(std::span<const std::byte, 8> prefix);

/// Reads and checks a header. `head` is the start of the file, at least 8 + N bytes of it where the
/// file has as many, and may be the whole mapped file; `file_size` is the size of the whole file.
/// Costs time and memory in proportion to the header only.
Checked<SafetensorsHeader> check_safetensors(std::span<const std::byte> head,
                                             std::uint64_t file_size, std::string_view path,
                                             Profile profile = Profile::strict,
                                             const Limits& limits = {});

/// The same over a whole mapped file, for a caller that wants the header or one reason.
Result<SafetensorsHeader> read_safetensors(std::span<const std::byte> file, std::string_view path,
                                           Profile profile = Profile::strict);

} // namespace modeld::validate
