// SPDX-License-Identifier: Apache-2.0
// The tensor infos: name, u32 number of dimensions, dimensions, u32 type, u64 offset.
// Rules GG-30 to GG-39.
#include "validate/escape.hpp"
#include "validate/gguf_reader.hpp"

#include <fmt/format.h>

#include <limits>

namespace modeld::validate {
namespace {

constexpr std::size_t k_max_name = 63; ///< the reference's buffer of 64 holds a terminator
constexpr std::uint32_t k_max_dims = 4;
constexpr auto k_max_elements =
    static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

std::string_view c_string(std::string_view text) {
  return text.substr(0, text.find('\0'));
}

/// What is known about ids that are no type today (validation.md 2.7).
std::string_view unknown_type_note(std::uint32_t id) {
  if (id == 4 || id == 5) return "it was removed in 2023, convert the model again";
  if (id >= 31 && id <= 33) return "it was removed, use Q4_0: it is repacked when it is loaded";
  if (id == 36) return "it was removed, use IQ4_NL; BitNet's fork uses this id for i2_s";
  if (id == 37 || id == 38) return "it was removed, use IQ4_NL";
  if (id == 156) return "ik_llama.cpp uses this id for IQ3_KS";
  if (id >= 97 && id < 400) return "possibly produced by a fork such as ik_llama.cpp";
  return "possibly produced by a newer version or a fork";
}

} // namespace

bool GgufReader::read_tensors() {
  header_.tensors.reserve(static_cast<std::size_t>(tensor_count_));
  header_.names_.reserve(static_cast<std::size_t>(tensor_count_));
  for (std::uint64_t i = 0; i < tensor_count_; ++i) {
    GgufTensorInfo info;
    if (!read_tensor(info)) return false;
    if (at_ > limits_.gguf_metadata_bytes) {
      report_.error("GN-08", at_,
                    fmt::format("the limit of {} bytes of metadata is exceeded",
                                limits_.gguf_metadata_bytes));
      return false;
    }
    header_.tensors.push_back(info);
  }
  return true;
}

bool GgufReader::read_tensor(GgufTensorInfo& info) {
  info.info_offset = at_;
  if (!read_string("a tensor's name", info.name)) return false;
  if (header_.encoding.short_lengths && info.name.ends_with('\0')) info.name.remove_suffix(1);
  check_tensor_name(info);
  const auto name_at = [&](std::uint32_t i) { return c_string(header_.tensors[i].name); };
  const auto position = static_cast<std::uint32_t>(header_.tensors.size());
  if (header_.names_.insert(c_string(info.name), position, name_at) && !report_.full())
    report_.error("GG-31", info.info_offset,
                  fmt::format("tensor {} stands twice", quoted(info.name)));
  if (!read_dims(info)) return false;
  if (!need(12, "GG-02", "a tensor's type and offset")) return false;
  const std::uint32_t type = header_.encoding.u32(here());
  info.offset = header_.encoding.u64(here() + 4);
  at_ += 12;
  if (!check_tensor_type(info, type)) layout_known_ = false;
  return true;
}

void GgufReader::check_tensor_name(const GgufTensorInfo& info) {
  if (report_.full()) return;
  if (info.name.empty()) {
    report_.warn("GG-30", info.info_offset, "a tensor has an empty name");
    return;
  }
  if (info.name.size() > k_max_name) {
    report_.error("GG-30", info.info_offset,
                  fmt::format("tensor name {} has {} bytes, llama.cpp loads at most {}",
                              quoted(info.name), info.name.size(), k_max_name));
  }
  if (utf8_valid_prefix(info.name) != info.name.size()) {
    report_.error("GG-30", info.info_offset,
                  fmt::format("tensor name {} is no UTF-8", quoted(info.name)));
  } else if (text_traits(info.name).control) {
    report_.error("GG-30", info.info_offset,
                  fmt::format("tensor name {} holds a control character", quoted(info.name)));
  }
}

bool GgufReader::read_dims(GgufTensorInfo& info) {
  if (!need(4, "GG-02", "a tensor's number of dimensions")) return false;
  info.n_dims = header_.encoding.u32(here());
  if (info.n_dims > k_max_dims) {
    report_.error("GG-32", at_,
                  fmt::format("tensor {} has {} dimensions, allowed are {}", quoted(info.name),
                              info.n_dims, k_max_dims));
    return false;
  }
  if (info.n_dims == 0) {
    report_.warn(
        "GG-32", at_,
        fmt::format("tensor {} has no dimension, that means one element", quoted(info.name)));
  }
  at_ += 4;
  const std::size_t size = header_.encoding.length_bytes();
  if (!need(info.n_dims * size, "GG-02", "a tensor's dimensions")) return false;
  for (std::uint32_t i = 0; i < info.n_dims; ++i, at_ += size)
    info.ne[i] = header_.encoding.length(here());
  return true;
}

bool GgufReader::check_tensor_type(GgufTensorInfo& info, std::uint32_t id) {
  const std::uint64_t type_offset = at_ - 12;
  // Over the dimensions that are not zero, so that a zero cannot hide an overflow.
  std::uint64_t nonzero = 1;
  bool good = true;
  bool zero = false;
  for (std::uint32_t i = 0; i < info.n_dims; ++i) {
    const std::uint64_t dim = info.ne[i];
    if (dim > k_max_elements) {
      report_.error("GG-33", info.info_offset,
                    fmt::format("dimension {} of tensor {} is {}, allowed is below 2^63", i,
                                quoted(info.name), dim));
      good = false;
    } else if (dim == 0) {
      zero = true;
    } else if (good &&
               (__builtin_mul_overflow(nonzero, dim, &nonzero) || nonzero > k_max_elements)) {
      report_.error("GG-35", info.info_offset,
                    fmt::format("tensor {} of {} elements has more than 2^63-1", quoted(info.name),
                                fmt::join(info.ne.begin(), info.ne.begin() + info.n_dims, " x ")));
      good = false;
    }
  }
  if (zero) {
    report_.warn("GG-34", info.info_offset,
                 fmt::format("tensor {} has a dimension of zero", quoted(info.name)));
  }
  const TensorTypeInfo* type = find_tensor_type(id);
  if (type == nullptr) {
    report_.error("GG-36", type_offset,
                  fmt::format("tensor {} has the unknown type {}: {}", quoted(info.name),
                              static_cast<std::int32_t>(id), unknown_type_note(id)),
                  "its size is not guessed; the file cannot be loaded by llama.cpp");
    return false;
  }
  info.type = type->type;
  if (info.type == TensorType::q8_1 || info.type == TensorType::q8_k) {
    report_.warn("GG-39", type_offset,
                 fmt::format("tensor {} has the type {}, which is only used while computing",
                             quoted(info.name), type->name));
  }
  if (!good) return false;
  check_tensor_size(info, zero ? 0 : nonzero);
  return layout_known_;
}

void GgufReader::check_tensor_size(GgufTensorInfo& info, std::uint64_t elements) {
  const TensorTypeInfo& type = modeld::info(info.type);
  if (info.ne[0] % type.block != 0) {
    report_.error("GG-37", info.info_offset,
                  fmt::format("rows of tensor {} have {} elements, {} needs a multiple of {}",
                              quoted(info.name), info.ne[0], type.name, type.block));
    layout_known_ = false;
    return;
  }
  // Whole blocks first, so that nothing is lost or wrapped.
  std::uint64_t padded = 0;
  const std::uint64_t alignment = header_.alignment;
  if (__builtin_mul_overflow(elements / type.block, std::uint64_t{type.bytes}, &info.bytes) ||
      __builtin_add_overflow(info.bytes, (alignment - info.bytes % alignment) % alignment,
                             &padded)) {
    report_.error("GG-38", info.info_offset,
                  fmt::format("tensor {} of {} {} elements takes more bytes than 64 bits can count",
                              quoted(info.name), elements, type.name));
    layout_known_ = false;
  }
}

} // namespace modeld::validate
