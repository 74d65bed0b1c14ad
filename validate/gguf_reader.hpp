// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "validate/gguf.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace modeld::validate {

/// One reading of one GGUF file. Private to this folder.
///
/// Reading stops at the first fault that leaves the position of the next field unknown; everything
/// else is reported and read over.
class GgufReader {
public:
  GgufReader(std::span<const std::byte> file, std::uint64_t file_size, std::string_view path,
             Profile profile, const Limits& limits);
  Checked<GgufHeader> run() &&;

private:
  // gguf_header.cpp: what comes before the tensors
  bool read_header();
  bool read_version();
  bool read_counts();
  bool check_count(std::string_view what, std::uint64_t count, std::uint64_t limit,
                   std::uint64_t least_bytes);
  /// A length and as many bytes; `what` names it in the message.
  bool read_string(std::string_view what, std::string_view& text);
  bool read_kv();
  bool read_key(GgufKvView& item);
  bool read_value(GgufKvView& item);
  bool read_array(GgufKvView& item);
  void check_key(const GgufKvView& item);

  // gguf_values.cpp: what the values themselves must hold
  void check_string(const GgufKvView& item);
  bool walk_strings(const GgufKvView& item, std::uint64_t count);
  void check_bools(const GgufKvView& item);
  void check_floats(const GgufKvView& item);

  // gguf_keys.cpp: keys with a fixed meaning
  void read_alignment();
  void check_architecture();
  void check_known_types();
  void check_quantization_version();

  // gguf_tensors.cpp
  bool read_tensors();
  bool read_tensor(GgufTensorInfo& info);
  bool read_dims(GgufTensorInfo& info);
  void check_tensor_name(const GgufTensorInfo& info);
  bool check_tensor_type(GgufTensorInfo& info, std::uint32_t id);
  void check_tensor_size(GgufTensorInfo& info, std::uint64_t elements);

  // gguf_layout.cpp: where the data lies
  void check_layout();
  void check_data_start();
  void check_ranges();
  void check_padding(std::uint64_t from, std::uint64_t to, std::string_view where);
  void check_tail(std::uint64_t from);

  bool need(std::uint64_t bytes, std::string_view rule, std::string_view what);
  std::uint64_t left() const { return file_.size() - at_; }
  const std::byte* here() const { return file_.data() + at_; }
  std::uint64_t min_kv_bytes() const { return header_.encoding.short_lengths ? 10 : 14; }
  std::uint64_t min_tensor_bytes() const { return header_.encoding.short_lengths ? 20 : 24; }

  std::span<const std::byte> file_;
  std::uint64_t file_size_;
  const Limits& limits_;
  std::size_t at_ = 0;
  std::uint64_t kv_count_ = 0;
  std::uint64_t tensor_count_ = 0;
  bool layout_known_ = true; ///< every tensor's size is known, and so is the alignment
  GgufHeader header_;
  Report report_;
};

} // namespace modeld::validate
