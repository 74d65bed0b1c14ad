// SPDX-License-Identifier: Apache-2.0
#include "quantize/gguf/gguf_source.hpp"

#include "quantize/gguf/gguf_writer.hpp"
#include "validate/gguf.hpp"
#include "validate/shard_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

namespace modeld::quantize {
namespace {

using validate::GgufType;
using validate::GgufValueView;

/// Rows that lie in a mapped file.
class FileRows final : public TensorSource {
public:
  FileRows(std::span<const std::byte> data, std::uint64_t row_bytes, std::size_t swapped)
      : data_(data), row_bytes_(row_bytes), swapped_(swapped) {}

  Result<void> read_rows(std::uint64_t first, std::uint64_t count,
                         std::span<std::byte> out) const override {
    const auto rows = data_.subspan(first * row_bytes_, count * row_bytes_);
    std::memcpy(out.data(), rows.data(), rows.size());
    if (swapped_ > 1) {
      for (auto at = out.begin(); at != out.end(); at += static_cast<std::ptrdiff_t>(swapped_)) {
        std::reverse(at, at + static_cast<std::ptrdiff_t>(swapped_));
      }
    }
    return {};
  }

private:
  std::span<const std::byte> data_;
  std::uint64_t row_bytes_;
  std::size_t swapped_; ///< bytes of an element that are in the other order; 0: none
};

template <class T>
T whole(const GgufValueView& value) {
  if constexpr (std::is_signed_v<T>) return static_cast<T>(*value.as_i64());
  return static_cast<T>(*value.as_u64());
}

template <class T>
T scalar(const GgufValueView& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return *value.as_bool();
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(*value.as_f64());
  } else {
    return whole<T>(value);
  }
}

template <class T>
GgufArray array(const GgufValueView& value) {
  std::vector<T> items(value.count);
  for (std::uint64_t i = 0; i < value.count; ++i) {
    items[i] = scalar<T>(value.at(i));
  }
  return items;
}

Result<GgufValue> array_of(const GgufValueView& value, std::string_view key) {
  switch (value.element) {
  case GgufType::u8:
    return array<std::uint8_t>(value);
  case GgufType::i8:
    return array<std::int8_t>(value);
  case GgufType::u16:
    return array<std::uint16_t>(value);
  case GgufType::i16:
    return array<std::int16_t>(value);
  case GgufType::u32:
    return array<std::uint32_t>(value);
  case GgufType::i32:
    return array<std::int32_t>(value);
  case GgufType::f32:
    return array<float>(value);
  case GgufType::boolean:
    return array<bool>(value);
  case GgufType::u64:
    return array<std::uint64_t>(value);
  case GgufType::i64:
    return array<std::int64_t>(value);
  case GgufType::f64:
    return array<double>(value);
  case GgufType::string: {
    std::vector<std::string> items;
    items.reserve(value.count);
    for (const std::string_view text : value.strings()) {
      items.emplace_back(text);
    }
    return GgufArray(std::move(items));
  }
  case GgufType::array:
    break;
  }
  return fail(Errc::unsupported,
              fmt::format("reading metadata '{}': arrays of arrays have no reader", key));
}

Result<GgufValue> value_of(const GgufValueView& value, std::string_view key) {
  switch (value.type) {
  case GgufType::u8:
    return scalar<std::uint8_t>(value);
  case GgufType::i8:
    return scalar<std::int8_t>(value);
  case GgufType::u16:
    return scalar<std::uint16_t>(value);
  case GgufType::i16:
    return scalar<std::int16_t>(value);
  case GgufType::u32:
    return scalar<std::uint32_t>(value);
  case GgufType::i32:
    return scalar<std::int32_t>(value);
  case GgufType::f32:
    return scalar<float>(value);
  case GgufType::boolean:
    return scalar<bool>(value);
  case GgufType::u64:
    return scalar<std::uint64_t>(value);
  case GgufType::i64:
    return scalar<std::int64_t>(value);
  case GgufType::f64:
    return scalar<double>(value);
  case GgufType::string:
    return std::string(*value.as_string());
  case GgufType::array:
    break;
  }
  return array_of(value, key);
}

/// A split key of any integer type.
std::optional<std::uint64_t> number(const GgufModel& model, std::string_view key) {
  const GgufValue* value = model.find(key);
  if (value == nullptr) return std::nullopt;
  return std::visit(
      [](const auto& v) -> std::optional<std::uint64_t> {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
          if (v >= T{0}) return static_cast<std::uint64_t>(v);
        }
        return std::nullopt;
      },
      *value);
}

tl::unexpected<Error> bad_split(std::string_view path, std::string cause, std::string hint = {}) {
  return fail(Errc::malformed, fmt::format("reading split GGUF '{}': {}", path, cause),
              std::move(hint));
}

Result<void> check_part(const GgufModel& part, std::string_view path, std::size_t index) {
  const auto stated = number(part, "split.no");
  if (!stated) return bad_split(path, "no split.no in its metadata");
  if (*stated != index) {
    return bad_split(path, fmt::format("split.no is {} where {} belongs", *stated, index));
  }
  return {};
}

Result<void> check_tensors(const GgufSource& source, std::string_view path) {
  std::set<std::string_view> names;
  for (const GgufTensor& tensor : source.model.tensors) {
    if (!names.insert(tensor.name).second) {
      return bad_split(path, fmt::format("tensor '{}' is in more than one part", tensor.name));
    }
  }
  const auto promised = number(source.model, "split.tensors.count");
  if (promised && *promised != source.model.tensors.size()) {
    return bad_split(path, fmt::format("split.tensors.count promises {} tensors; the parts have {}",
                                       *promised, source.model.tensors.size()));
  }
  return {};
}

Result<void> add_part(const FileSet& files, const std::string& path, std::size_t index,
                      GgufSource& source) {
  if (!files.contains(path)) {
    return fail(Errc::not_found, fmt::format("reading split GGUF: part '{}' is missing", path),
                "all parts must lie in one folder under the names they were made with");
  }
  MODELD_ASSIGN(const auto bytes, files.bytes(path));
  MODELD_ASSIGN(GgufModel part, read_gguf_model(bytes, path));
  MODELD_TRY(check_part(part, path, index));
  for (GgufTensor& tensor : part.tensors) {
    source.model.tensors.push_back(std::move(tensor));
    source.parts.push_back(static_cast<std::uint16_t>(index));
  }
  source.paths.push_back(path);
  source.bytes += bytes.size();
  return {};
}

} // namespace

std::string part_path(std::string_view prefix, std::size_t part, std::size_t count) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", prefix, part + 1, count);
}

Result<GgufModel> read_gguf_model(std::span<const std::byte> file, std::string_view path) {
  MODELD_ASSIGN(const validate::GgufHeader header,
                validate::read_gguf(file, path, validate::Profile::compat));
  GgufModel model;
  model.alignment = header.alignment;
  for (const validate::GgufKvView& kv : header.kv) {
    MODELD_ASSIGN(GgufValue value, value_of(kv.value, kv.key));
    model.kv.push_back({std::string(kv.key), std::move(value)});
  }
  for (const validate::GgufTensorInfo& tensor : header.tensors) {
    const bool swap = header.encoding.big_endian && swapped_in_big_endian(tensor.type);
    const std::uint64_t rows = tensor.rows();
    GgufTensor made{std::string(tensor.name), tensor.type, {}, nullptr};
    made.ne.assign(tensor.ne.begin(), tensor.ne.begin() + tensor.n_dims);
    made.source =
        std::make_shared<FileRows>(header.data(file, tensor), rows == 0 ? 0 : tensor.bytes / rows,
                                   swap ? info(tensor.type).bytes : 0);
    model.tensors.push_back(std::move(made));
  }
  return model;
}

Result<GgufSource> open_gguf_source(const FileSet& files, std::string_view path) {
  MODELD_ASSIGN(const auto bytes, files.bytes(path));
  GgufSource source;
  MODELD_ASSIGN(source.model, read_gguf_model(bytes, path));
  source.parts.assign(source.model.tensors.size(), 0);
  source.paths.emplace_back(path);
  source.bytes = bytes.size();
  const std::uint64_t count = number(source.model, "split.count").value_or(0);
  if (count < 2) return source;
  if (count > std::numeric_limits<std::uint16_t>::max()) {
    return bad_split(path, fmt::format("split.count is {}; at most 65535 are possible", count));
  }
  MODELD_TRY(check_part(source.model, path, 0).map_error([](Error error) {
    return std::move(error).with_hint("give the first part of a split file");
  }));
  const auto name = validate::numbered_name(path, ".gguf");
  if (!name || name->number != 1 || name->total != count) {
    return bad_split(path,
                     fmt::format("it is the first of {} parts, so its name must end in {}", count,
                                 part_path("", 0, count)),
                     "rename it as it was made");
  }
  for (std::size_t i = 1; i < count; ++i) {
    MODELD_TRY(add_part(files, part_path(name->prefix, i, count), i, source));
  }
  MODELD_TRY(check_tensors(source, path));
  return source;
}

} // namespace modeld::quantize
