// SPDX-License-Identifier: Apache-2.0
#include "quantize/gguf/gguf_writer.hpp"

#include "validate/gguf.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <set>
#include <string_view>
#include <type_traits>

// GGUF version 3:
//
//   file    := magic version tensors keys kv{keys} info{tensors} pad data{tensors}
//   magic   := "GGUF"          always in this order of bytes
//   version := u32 = 3         this and all that follows in the byte order of the file
//   tensors, keys := u64
//   kv      := string type value
//   string  := u64 bytes, UTF-8
//   value   := by type; an array is type u64 elements
//   info    := string, dimensions u32, u64{dimensions} fastest first, type u32, offset u64
//   offset  := from the first byte of data, a multiple of the alignment
//
// A file of a vocabulary alone ends after the last kv, without padding, as the reference's does.

namespace modeld::quantize {
namespace {

// Runtimes keep names in 64 bytes, the terminating NUL included (failure case D06).
constexpr std::size_t k_max_name = 63;
constexpr std::size_t k_max_dimensions = 4;
constexpr std::uint32_t k_version = 3;

using validate::GgufType;

template <class T>
constexpr GgufType kv_type_of() {
  if constexpr (std::is_same_v<T, std::uint8_t>) return GgufType::u8;
  if constexpr (std::is_same_v<T, std::int8_t>) return GgufType::i8;
  if constexpr (std::is_same_v<T, std::uint16_t>) return GgufType::u16;
  if constexpr (std::is_same_v<T, std::int16_t>) return GgufType::i16;
  if constexpr (std::is_same_v<T, std::uint32_t>) return GgufType::u32;
  if constexpr (std::is_same_v<T, std::int32_t>) return GgufType::i32;
  if constexpr (std::is_same_v<T, float>) return GgufType::f32;
  if constexpr (std::is_same_v<T, bool>) return GgufType::boolean;
  if constexpr (std::is_same_v<T, std::string>) return GgufType::string;
  if constexpr (std::is_same_v<T, GgufArray>) return GgufType::array;
  if constexpr (std::is_same_v<T, std::uint64_t>) return GgufType::u64;
  if constexpr (std::is_same_v<T, std::int64_t>) return GgufType::i64;
  if constexpr (std::is_same_v<T, double>) return GgufType::f64;
}

/// Appends values in the byte order of the file.
class HeaderBytes {
public:
  explicit HeaderBytes(bool big_endian) : swap_(big_endian) {}

  void raw(const void* data, std::size_t size) {
    const auto* from = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), from, from + size);
  }

  template <class T>
  void number(T value) {
    std::array<std::byte, sizeof(T)> bytes{};
    std::memcpy(bytes.data(), &value, sizeof(T));
    if (swap_) std::reverse(bytes.begin(), bytes.end());
    raw(bytes.data(), bytes.size());
  }

  void string(std::string_view text) {
    number(std::uint64_t{text.size()});
    raw(text.data(), text.size());
  }

  void type(GgufType type) { number(static_cast<std::uint32_t>(type)); }

  template <class T>
  void plain(const T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      string(value);
    } else if constexpr (std::is_same_v<T, bool>) {
      number(std::uint8_t{value});
    } else {
      number(value);
    }
  }

  void array(const GgufArray& array) {
    std::visit(
        [this](const auto& items) {
          using Item = typename std::decay_t<decltype(items)>::value_type;
          type(kv_type_of<Item>());
          number(std::uint64_t{items.size()});
          for (auto&& item : items) {
            plain<Item>(item);
          }
        },
        array);
  }

  void value(const GgufValue& value) {
    std::visit(
        [this](const auto& item) {
          using Item = std::decay_t<decltype(item)>;
          type(kv_type_of<Item>());
          if constexpr (std::is_same_v<Item, GgufArray>) {
            array(item);
          } else {
            plain<Item>(item);
          }
        },
        value);
  }

  void pad(std::uint64_t alignment) {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
  }

  std::vector<std::byte> take() { return std::move(bytes_); }

private:
  bool swap_;
  std::vector<std::byte> bytes_;
};

Result<void> check_keys(const GgufModel& model) {
  std::set<std::string_view> keys;
  for (const GgufKv& kv : model.kv) {
    if (!keys.insert(kv.key).second) {
      return fail(Errc::invalid_argument,
                  fmt::format("writing key '{}': it stands twice in the metadata", kv.key));
    }
    const auto* array = std::get_if<GgufArray>(&kv.value);
    if (array != nullptr && std::visit([](const auto& a) { return a.empty(); }, *array)) {
      return fail(Errc::invalid_argument,
                  fmt::format("writing key '{}': an empty array has no type in GGUF", kv.key));
    }
  }
  return {};
}

Result<void> check_tensor(const GgufTensor& tensor) {
  const auto refuse = [&tensor](std::string_view why) {
    return fail(Errc::invalid_argument, fmt::format("writing tensor '{}': {}", tensor.name, why));
  };
  if (tensor.name.empty()) return refuse("a tensor needs a name");
  if (tensor.name.size() > k_max_name) {
    return refuse(
        fmt::format("name of {} bytes, at most {} are loadable", tensor.name.size(), k_max_name));
  }
  if (tensor.ne.size() > k_max_dimensions) {
    return refuse(
        fmt::format("{} dimensions, at most {} are allowed", tensor.ne.size(), k_max_dimensions));
  }
  std::uint64_t elements = 1;
  for (const std::uint64_t n : tensor.ne) {
    if (__builtin_mul_overflow(elements, n, &elements)) return refuse("its size overflows");
  }
  if (!tensor_bytes(tensor.type, elements) || !tensor_bytes(tensor.type, tensor.row_elements())) {
    return refuse(fmt::format("rows of {} elements are no whole blocks of {} ({} elements)",
                              tensor.row_elements(), info(tensor.type).name,
                              info(tensor.type).block));
  }
  return {};
}

std::uint64_t padded(std::uint64_t size, std::uint64_t alignment) {
  return (size + alignment - 1) / alignment * alignment;
}

} // namespace

bool swapped_in_big_endian(TensorType type) {
  const TensorTypeInfo& row = info(type);
  return row.block == 1 && row.bytes > 1 && type != TensorType::bf16;
}

Result<GgufLayout> lay_out_gguf(const GgufModel& model) {
  if (!std::has_single_bit(model.alignment)) {
    return fail(
        Errc::invalid_argument,
        fmt::format("writing a GGUF file: alignment {} is no power of two", model.alignment));
  }
  MODELD_TRY(check_keys(model));

  HeaderBytes out(model.big_endian);
  out.raw("GGUF", 4);
  out.number(k_version);
  out.number(std::uint64_t{model.tensors.size()});
  out.number(std::uint64_t{model.kv.size()});
  for (const GgufKv& kv : model.kv) {
    out.string(kv.key);
    out.value(kv.value);
  }

  GgufLayout layout;
  std::set<std::string_view> names;
  std::uint64_t offset = 0;
  for (const GgufTensor& tensor : model.tensors) {
    MODELD_TRY(check_tensor(tensor));
    if (!names.insert(tensor.name).second) {
      return fail(Errc::invalid_argument,
                  fmt::format("writing tensor '{}': the name is taken already", tensor.name));
    }
    out.string(tensor.name);
    out.number(static_cast<std::uint32_t>(tensor.ne.size()));
    for (const std::uint64_t n : tensor.ne) {
      out.number(n);
    }
    out.number(static_cast<std::uint32_t>(tensor.type));
    out.number(offset);
    layout.offsets.push_back(offset);
    offset += padded(tensor.bytes(), model.alignment);
  }
  if (!model.vocabulary_only) out.pad(model.alignment);

  layout.header = out.take();
  for (std::uint64_t& at : layout.offsets) {
    at += layout.header.size();
  }
  layout.file_size = layout.header.size() + offset;
  return layout;
}

Result<std::uint64_t> gguf_file_size(const GgufModel& model) {
  MODELD_ASSIGN(const GgufLayout layout, lay_out_gguf(model));
  return layout.file_size;
}

} // namespace modeld::quantize
