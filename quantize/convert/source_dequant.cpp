// SPDX-License-Identifier: Apache-2.0
#include "quantize/convert/source_dequant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

namespace modeld::quantize {
namespace {

tl::unexpected<Error> no_fit(std::string_view what, const SourceTensor& a, const SourceTensor& b) {
  return fail(Errc::malformed, fmt::format("{}: shapes [{}] and [{}] do not fit", what,
                                           fmt::join(a.shape(), ", "), fmt::join(b.shape(), ", ")));
}

/// A tensor whose single-precision elements a function makes.
class Made : public SourceTensor {
public:
  explicit Made(Shape shape) : SourceTensor(ElementType::f32, std::move(shape)) {}
  Result<void> read(std::uint64_t first, std::uint64_t count, std::byte* out) const override {
    return make(first, count, reinterpret_cast<float*>(out));
  }

protected:
  virtual Result<void> make(std::uint64_t first, std::uint64_t count, float* out) const = 0;
};

std::int32_t load_i32(const std::byte* from, std::uint64_t index) {
  std::int32_t value = 0;
  std::memcpy(&value, from + index * sizeof value, sizeof value);
  return value;
}

/// Whole numbers of four bytes that lie in memory, as checkpoints have them.
const std::byte* words_of(const SourceTensor& tensor) {
  return tensor.type() == ElementType::i32 ? tensor.contiguous() : nullptr;
}

class Scaled final : public Made {
public:
  /// `place[d]`: block along dimension d, or 0 where the scale has one value for all of it.
  Scaled(SourcePtr weight, SourcePtr scale, Shape scale_shape, Shape block)
      : Made(weight->shape()), weight_(std::move(weight)), scale_(std::move(scale)),
        block_(std::move(block)), strides_(scale_shape.size()) {
    std::uint64_t step = 1;
    for (std::size_t i = scale_shape.size(); i-- > 0;) {
      strides_[i] = step;
      step *= scale_shape[i];
    }
    const bool fp8 =
        weight_->type() == ElementType::f8_e4m3 || weight_->type() == ElementType::f8_e5m2;
    check_ = fp8;
  }

protected:
  Result<void> make(std::uint64_t first, std::uint64_t count, float* out) const override {
    MODELD_TRY(read_f32(*weight_, first, count, out));
    if (check_ && std::any_of(out, out + count, [](float x) { return std::isnan(x); })) {
      return fail(Errc::malformed, "an FP8 code of the weights is no number");
    }
    const std::uint64_t row = shape().empty() ? 1 : shape().back();
    const std::uint64_t last = block_.empty() ? 0 : block_.back();
    while (count > 0) {
      const std::uint64_t column = first % row;
      const std::uint64_t run =
          std::min({count, row - column, last == 0 ? row : last - column % last});
      float factor = 0;
      MODELD_TRY(read_f32(*scale_, place(first), 1, &factor));
      for (std::uint64_t i = 0; i < run; ++i) {
        out[i] *= factor;
      }
      first += run;
      count -= run;
      out += run;
    }
    return {};
  }

private:
  std::uint64_t place(std::uint64_t element) const {
    std::uint64_t at = 0;
    for (std::size_t d = shape().size(); d-- > 0;) {
      const std::uint64_t coordinate = element % shape()[d];
      element /= shape()[d];
      if (block_[d] != 0) at += coordinate / block_[d] * strides_[d];
    }
    return at;
  }

  SourcePtr weight_;
  SourcePtr scale_;
  Shape block_;
  Shape strides_;
  bool check_ = false;
};

class Bitnet final : public Made {
public:
  Bitnet(SourcePtr packed, Shape shape, float scale)
      : Made(std::move(shape)), packed_(std::move(packed)), scale_(scale) {}

protected:
  Result<void> make(std::uint64_t first, std::uint64_t count, float* out) const override {
    const std::uint64_t quarter = packed_->elements();
    std::array<std::byte, 4096> bytes;
    while (count > 0) {
      const std::uint64_t inside = first % quarter;
      const std::uint64_t some = std::min({count, quarter - inside, bytes.size()});
      const auto shift = static_cast<unsigned>(first / quarter * 2);
      MODELD_TRY(packed_->read(inside, some, bytes.data()));
      for (std::uint64_t i = 0; i < some; ++i) {
        const unsigned code = std::to_integer<unsigned>(bytes[i]) >> shift & 3U;
        out[i] = (static_cast<float>(code) - 1.0F) / scale_;
      }
      first += some;
      count -= some;
      out += some;
    }
    return {};
  }

private:
  SourcePtr packed_;
  float scale_;
};

class Gptq final : public Made {
public:
  Gptq(GptqParts parts, std::vector<std::uint32_t> groups, unsigned bits, std::int32_t zero_shift)
      : Made({parts.qweight->shape()[1], groups.size()}), parts_(std::move(parts)),
        groups_(std::move(groups)), bits_(bits), pack_(32 / bits), zero_shift_(zero_shift) {}

protected:
  Result<void> make(std::uint64_t first, std::uint64_t count, float* out) const override {
    const std::byte* words = words_of(*parts_.qweight);
    const std::byte* zeros = words_of(*parts_.qzeros);
    const std::uint64_t inputs = groups_.size();
    const std::uint64_t outputs = shape()[0];
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t o = (first + i) / inputs;
      const std::uint64_t in = (first + i) % inputs;
      const std::uint32_t group = groups_[in];
      const std::int32_t weight = field(load_i32(words, in / pack_ * outputs + o), in);
      const std::int32_t zero =
          field(load_i32(zeros, group * (outputs / pack_) + o / pack_), o) + zero_shift_;
      float scale = 0;
      MODELD_TRY(read_f32(*parts_.scales, group * outputs + o, 1, &scale));
      out[i] = scale * static_cast<float>(weight - zero);
    }
    return {};
  }

private:
  std::int32_t field(std::int32_t word, std::uint64_t index) const {
    const auto shift = static_cast<unsigned>(index % pack_) * bits_;
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(word) >> shift &
                                     ((1U << bits_) - 1));
  }

  GptqParts parts_;
  std::vector<std::uint32_t> groups_;
  unsigned bits_;
  unsigned pack_;
  std::int32_t zero_shift_;
};

class PackQuantized final : public Made {
public:
  PackQuantized(PackedParts parts, Shape shape, unsigned bits, std::uint64_t group)
      : Made(std::move(shape)), parts_(std::move(parts)), bits_(bits), group_(group),
        pack_(32 / bits) {}
  unsigned pack() const { return pack_; }

protected:
  Result<void> make(std::uint64_t first, std::uint64_t count, float* out) const override {
    const std::byte* words = words_of(*parts_.packed);
    const std::byte* zeros = parts_.zero_point ? words_of(*parts_.zero_point) : nullptr;
    const std::uint64_t columns = shape()[1];
    const std::uint64_t groups = columns / group_;
    const std::uint64_t row_words = parts_.packed->shape()[1];
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t r = (first + i) / columns;
      const std::uint64_t c = (first + i) % columns;
      const std::int32_t value = field(load_i32(words, r * row_words + c / pack_), c);
      const std::int32_t offset = zeros == nullptr
                                      ? 1 << (bits_ - 1)
                                      : field(load_i32(zeros, r / pack_ * groups + c / group_), r);
      float scale = 0;
      MODELD_TRY(read_f32(*parts_.scale, r * groups + c / group_, 1, &scale));
      out[i] = static_cast<float>(value - offset) * scale;
    }
    return {};
  }

private:
  std::int32_t field(std::int32_t word, std::uint64_t index) const {
    const auto shift = static_cast<unsigned>(index % pack_) * bits_;
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(word) >> shift &
                                     ((1U << bits_) - 1));
  }

  PackedParts parts_;
  unsigned bits_;
  std::uint64_t group_;
  unsigned pack_;
};

/// Blocks of 4-bit codes with their scales, rearranged; reads whole rows of output bytes.
class FourBitBlocks final : public SourceTensor {
public:
  /// `codes` bytes hold two elements each, low nibble first; a group of `group` elements has one
  /// scale byte; `scales_first` groups stand together in a block, scales in front.
  FourBitBlocks(SourcePtr weight, SourcePtr scale, Shape shape, TensorType type, unsigned group,
                unsigned together)
      : SourceTensor(ElementType::u8, std::move(shape)), weight_(std::move(weight)),
        scale_(std::move(scale)), type_(type), group_(group), together_(together) {}

  std::optional<TensorType> packed() const override { return type_; }

  Result<void> read(std::uint64_t first, std::uint64_t count, std::byte* out) const override {
    const std::uint64_t block = std::uint64_t{together_} * (1 + group_ / 2);
    std::vector<std::byte> one(block);
    while (count > 0) {
      const std::uint64_t inside = first % block;
      const std::uint64_t some = std::min(count, block - inside);
      MODELD_TRY(make(first / block, one.data()));
      std::memcpy(out, one.data() + inside, some);
      first += some;
      count -= some;
      out += some;
    }
    return {};
  }

private:
  Result<void> make(std::uint64_t block, std::byte* out) const {
    const unsigned half = group_ / 2;
    std::array<std::byte, 32> codes;
    MODELD_TRY(scale_->read(block * together_, together_, out));
    // The sign of an NVFP4 scale is dropped: GGUF's scales have none.
    if (type_ == TensorType::nvfp4) {
      for (unsigned g = 0; g < together_; ++g) {
        out[g] &= std::byte{0x7F};
      }
    }
    out += together_;
    for (unsigned g = 0; g < together_; ++g) {
      MODELD_TRY(weight_->read((block * together_ + g) * half, half, codes.data()));
      const auto nibble = [&codes](unsigned element) {
        const auto byte = std::to_integer<unsigned>(codes[element / 2]);
        return element % 2 == 0 ? byte & 15U : byte >> 4;
      };
      for (unsigned j = 0; j < half; ++j) {
        *out++ = static_cast<std::byte>(nibble(j) | nibble(j + half) << 4);
      }
    }
    return {};
  }

  SourcePtr weight_;
  SourcePtr scale_;
  TensorType type_;
  unsigned group_;
  unsigned together_;
};

Result<SourcePtr> four_bit(SourcePtr weight, SourcePtr scale, TensorType type, unsigned group,
                           unsigned together) {
  Shape shape = weight->shape();
  const Shape& scales = scale->shape();
  const std::uint64_t block = std::uint64_t{group} * together;
  if (info(weight->type()).bytes != 1 || info(scale->type()).bytes != 1 || shape.empty() ||
      scales.size() != shape.size() || shape.back() * 2 % block != 0 ||
      scales.back() * group != shape.back() * 2 ||
      !std::equal(shape.begin(), shape.end() - 1, scales.begin())) {
    return no_fit("unpacking 4-bit floats", *weight, *scale);
  }
  shape.back() = scales.back() * (1 + group / 2);
  return std::make_shared<FourBitBlocks>(std::move(weight), std::move(scale), std::move(shape),
                                         type, group, together);
}

} // namespace

Result<SourcePtr> scaled_weight(SourcePtr weight, SourcePtr scale,
                                const std::vector<std::uint64_t>& block) {
  Shape scales = scale->shape();
  const Shape& shape = weight->shape();
  if (scales.size() > shape.size() || block.size() > scales.size()) {
    return no_fit("scaling weights", *weight, *scale);
  }
  const std::size_t first_block = scales.size() - block.size();
  Shape places(shape.size());
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (d >= scales.size()) continue;
    const std::uint64_t size = d >= first_block && !block.empty() ? block[d - first_block] : 1;
    const std::uint64_t reach = scales[d] * size;
    if (size == 0 || (reach < shape[d] && reach != 1) || (size == 1 && reach > shape[d])) {
      return no_fit("scaling weights", *weight, *scale);
    }
    places[d] = reach == 1 ? 0 : size;
  }
  scales.resize(shape.size(), 1);
  return std::make_shared<Scaled>(std::move(weight), std::move(scale), std::move(scales),
                                  std::move(places));
}

Result<SourcePtr> bitnet_weight(SourcePtr packed, SourcePtr scale) {
  if (info(packed->type()).bytes != 1 || packed->shape().empty() || scale->elements() != 1) {
    return no_fit("unpacking ternary weights", *packed, *scale);
  }
  float factor = 0;
  MODELD_TRY(read_f32(*scale, 0, 1, &factor));
  Shape shape = packed->shape();
  shape[0] *= 4;
  return std::make_shared<Bitnet>(std::move(packed), std::move(shape), factor);
}

Result<SourcePtr> gptq_weight(const GptqParts& parts, std::int64_t bits, std::int64_t zero_shift) {
  if (bits != 2 && bits != 4 && bits != 8) {
    return fail(Errc::unsupported, fmt::format("GPTQ of {} bits; known are 2, 4 and 8", bits));
  }
  const Shape& q = parts.qweight->shape();
  const Shape& z = parts.qzeros->shape();
  const Shape& s = parts.scales->shape();
  const auto pack = static_cast<std::uint64_t>(32 / bits);
  MODELD_ASSIGN(const auto groups, read_integers(*parts.g_idx));
  if (words_of(*parts.qweight) == nullptr || words_of(*parts.qzeros) == nullptr || q.size() != 2 ||
      z.size() != 2 || s.size() != 2 || q[0] * pack != groups.size() || s[1] != q[1] ||
      z[0] != s[0] || z[1] * pack != s[1]) {
    return no_fit("unpacking GPTQ weights", *parts.qweight, *parts.qzeros);
  }
  std::vector<std::uint32_t> places;
  for (const std::int64_t group : groups) {
    if (group < 0 || static_cast<std::uint64_t>(group) >= s[0]) {
      return fail(Errc::malformed, fmt::format("g_idx holds group {} of {}", group, s[0]));
    }
    places.push_back(static_cast<std::uint32_t>(group));
  }
  return std::make_shared<Gptq>(parts, std::move(places), static_cast<unsigned>(bits),
                                static_cast<std::int32_t>(zero_shift));
}

Result<SourcePtr> packed_weight(const PackedParts& parts, std::int64_t bits,
                                std::int64_t group_size) {
  MODELD_ASSIGN(const auto size, read_integers(*parts.shape));
  if (bits < 1 || bits > 8 || group_size < 1) {
    return fail(Errc::unsupported, fmt::format("{} bits in groups of {}", bits, group_size));
  }
  const auto pack = static_cast<std::uint64_t>(32 / bits);
  const Shape& words = parts.packed->shape();
  const Shape& scales = parts.scale->shape();
  const bool fits = size.size() == 2 && size[0] > 0 && size[1] > 0 && size[1] % group_size == 0 &&
                    words_of(*parts.packed) != nullptr && words.size() == 2 && scales.size() == 2 &&
                    words[0] == static_cast<std::uint64_t>(size[0]) &&
                    words[1] * pack >= static_cast<std::uint64_t>(size[1]) &&
                    scales[0] == words[0] &&
                    scales[1] == static_cast<std::uint64_t>(size[1] / group_size);
  if (!fits) return no_fit("unpacking weights", *parts.packed, *parts.scale);
  if (parts.zero_point) {
    const Shape& zeros = parts.zero_point->shape();
    if (words_of(*parts.zero_point) == nullptr || zeros.size() != 2 || zeros[0] * pack < words[0] ||
        zeros[1] != scales[1]) {
      return no_fit("unpacking zero points", *parts.packed, *parts.zero_point);
    }
  }
  const Shape shape{static_cast<std::uint64_t>(size[0]), static_cast<std::uint64_t>(size[1])};
  return std::make_shared<PackQuantized>(parts, shape, static_cast<unsigned>(bits),
                                         static_cast<std::uint64_t>(group_size));
}

Result<SourcePtr> nvfp4_blocks(SourcePtr weight, SourcePtr scale) {
  return four_bit(std::move(weight), std::move(scale), TensorType::nvfp4, 16, 4);
}

Result<SourcePtr> mxfp4_blocks(SourcePtr weight, SourcePtr scale) {
  return four_bit(std::move(weight), std::move(scale), TensorType::mxfp4, 32, 1);
}

} // namespace modeld::quantize
