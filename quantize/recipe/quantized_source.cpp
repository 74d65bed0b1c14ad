// SPDX-License-Identifier: Apache-2.0
#include "quantize/recipe/quantized_source.hpp"

#include "quantize/kernels/row_codec.hpp"
#include "validate/block_scales.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>

namespace modeld::quantize {
namespace {

struct Place {
  std::uint64_t row;
  std::uint64_t element;
};

/// Where block number `block` of rows that begin at `first` stands.
Place place(const GgufTensor& tensor, TensorType type, std::uint64_t first, std::uint64_t block) {
  const std::uint64_t per_row = tensor.row_elements() / info(type).block;
  return {first + block / per_row, block % per_row * info(type).block};
}

tl::unexpected<Error> no_number(const GgufTensor& tensor, Place at) {
  return fail(Errc::malformed,
              fmt::format("tensor '{}' ({}): row {}, element {} is NaN or infinite", tensor.name,
                          info(tensor.type).name, at.row, at.element),
              "the source file is damaged or was trained into a bad state; nothing useful can be "
              "made from it");
}

Result<void> check_input(const GgufTensor& tensor, std::uint64_t first,
                         std::span<const std::byte> rows) {
  const auto bad = validate::first_bad_block(tensor.type, rows);
  if (!bad) return {};
  return no_number(tensor, place(tensor, tensor.type, first, *bad));
}

class Checked final : public TensorSource {
public:
  explicit Checked(const GgufTensor& from) : from_(from) {}

  Result<void> read_rows(std::uint64_t first, std::uint64_t count,
                         std::span<std::byte> out) const override {
    MODELD_TRY(from_.source->read_rows(first, count, out));
    return check_input(from_, first, out);
  }

private:
  GgufTensor from_;
};

/// The largest magnitude that a type is asked to hold, as the bits of a float. A block with a
/// binary16 scale reaches at most 65504 * 128 * 32 (Q6_K); from there on the searches would compute
/// with infinite sums and find any scale. Plain types and those with 8-bit exponents take all
/// that is finite.
std::uint32_t magnitude_limit(TensorType type) {
  constexpr float k_half_scaled = 65504.0F * 128.0F * 32.0F * 2.0F;
  const bool any = !info(type).quantized || type == TensorType::mxfp4 || type == TensorType::nvfp4;
  return std::bit_cast<std::uint32_t>(any ? std::numeric_limits<float>::max() : k_half_scaled);
}

constexpr std::uint32_t k_magnitude = 0x7FFFFFFF;

/// Whether no magnitude is above the limit, as bits; no NaN passes either. In strides of fixed
/// length and with comparisons of signed numbers, which compilers turn into vectors.
bool within(std::span<const float> values, std::uint32_t limit) {
  constexpr std::size_t k_stride = 64;
  const auto most = static_cast<std::int32_t>(limit);
  const auto above = [most](float v) {
    const auto magnitude = static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(v) & k_magnitude);
    return static_cast<std::int32_t>(magnitude > most);
  };
  std::size_t i = 0;
  for (; i + k_stride <= values.size(); i += k_stride) {
    const float* at = values.data() + i;
    std::int32_t any = 0;
    for (std::size_t j = 0; j < k_stride; ++j) {
      any |= above(at[j]);
    }
    if (any != 0) return false;
  }
  return std::none_of(values.begin() + static_cast<std::ptrdiff_t>(i), values.end(),
                      [&](float v) { return above(v) != 0; });
}

class Quantized final : public TensorSource {
public:
  Quantized(const GgufTensor& from, TensorType to,
            std::shared_ptr<const std::vector<float>> importance, OnBadResult on_bad)
      : from_(from), in_(codec(from.type)), out_(codec(to)), importance_(std::move(importance)),
        on_bad_(on_bad), limit_(magnitude_limit(to)) {
    if (importance_ && on_bad == OnBadResult::refuse) {
      unweighted_ = zero_weighted_blocks(to, *importance_);
    }
  }

  Result<void> read_rows(std::uint64_t first, std::uint64_t count,
                         std::span<std::byte> out) const override {
    // A few rows at a time, so that the floats stay in the cache.
    constexpr std::uint64_t k_elements = 32768;
    const std::uint64_t row_elements = from_.row_elements();
    const std::uint64_t step = std::clamp<std::uint64_t>(k_elements / row_elements, 1, count);
    // Not cleared first: all that is read of it was written before.
    const auto raw = std::make_unique_for_overwrite<std::byte[]>(step * from_.row_bytes());
    const auto floats = std::make_unique_for_overwrite<float[]>(step * row_elements);
    const std::uint64_t out_row = out.size() / count;
    for (std::uint64_t done = 0; done < count;) {
      const std::uint64_t row = first + done;
      const std::uint64_t rows = std::min({step, count - done, rows_left_in_expert(row)});
      const std::span values(floats.get(), rows * row_elements);
      MODELD_TRY(load(row, rows, std::span(raw.get(), rows * from_.row_bytes()), values));
      const auto blocks = out.subspan(done * out_row, rows * out_row);
      quantize(row, values, blocks);
      MODELD_TRY(check_output(row, blocks));
      done += rows;
    }
    return {};
  }

private:
  std::uint64_t expert_rows() const { return from_.ne.size() > 1 ? from_.ne[1] : 1; }
  std::uint64_t rows_left_in_expert(std::uint64_t row) const {
    return expert_rows() - row % expert_rows();
  }

  /// Rows as floats, sound and within what the type can hold.
  Result<void> load(std::uint64_t row, std::uint64_t rows, std::span<std::byte> raw,
                    std::span<float> values) const {
    MODELD_TRY(from_.source->read_rows(row, rows, raw));
    if (info(from_.type).quantized) MODELD_TRY(check_input(from_, row, raw));
    in_.dequantize(raw.data(), rows, from_.row_elements(), values.data());
    if (!within(values, limit_)) return too_large(row, values);
    if (out_.type == TensorType::iq3_s && on_bad_ == OnBadResult::refuse) {
      return check_zero_runs(row, values);
    }
    return {};
  }

  tl::unexpected<Error> too_large(std::uint64_t row, std::span<const float> values) const {
    const auto at = std::find_if(values.begin(), values.end(), [this](float v) {
      return (std::bit_cast<std::uint32_t>(v) & k_magnitude) > limit_;
    });
    const auto index = static_cast<std::uint64_t>(at - values.begin());
    const Place where{row + index / from_.row_elements(), index % from_.row_elements()};
    if (!std::isfinite(*at)) return no_number(from_, where);
    return fail(Errc::unsupported,
                fmt::format("tensor '{}': row {}, element {} is {}, more than {} can hold",
                            from_.name, where.row, where.element, *at, info(out_.type).name),
                "give the tensor another type by --tensor-type, for example BF16");
  }

  Result<void> check_zero_runs(std::uint64_t row, std::span<const float> values) const {
    constexpr std::size_t k_run = 32;
    constexpr std::size_t k_block = 256;
    for (std::size_t at = 0; at + k_run <= values.size(); at += k_run) {
      if (!within(values.subspan(at, k_run), 0)) continue;
      const std::size_t behind = at + k_run;
      const std::size_t end = at / k_block * k_block + k_block;
      if (within(values.subspan(behind, end - behind), 0)) continue;
      const std::uint64_t elements = from_.row_elements();
      return fail(Errc::unsupported,
                  fmt::format("tensor '{}': row {}, elements {} to {} are all zero, and the "
                              "reference's IQ3_S puts what follows in the wrong place",
                              from_.name, row + at / elements, at % elements,
                              at % elements + k_run - 1),
                  "give the tensor another type by --tensor-type, for example IQ4_XS; --force "
                  "writes what the reference writes");
    }
    return {};
  }

  void quantize(std::uint64_t row, std::span<const float> values,
                std::span<std::byte> blocks) const {
    const std::uint64_t elements = from_.row_elements();
    const std::uint64_t rows = values.size() / elements;
    if (!importance_) {
      out_.quantize(values.data(), rows, elements, nullptr, blocks.data());
      return;
    }
    // An expert's weights, whatever further dimension there is.
    const std::uint64_t first_column = row / expert_rows() * elements % importance_->size();
    out_.quantize(values.data(), rows, elements, importance_->data() + first_column, blocks.data());
    quantize_unweighted(first_column, values, blocks);
  }

  /// Once more the blocks that no weight guides.
  void quantize_unweighted(std::uint64_t first_column, std::span<const float> values,
                           std::span<std::byte> blocks) const {
    const std::uint64_t elements = from_.row_elements();
    const std::uint64_t block = info(out_.type).block;
    const std::vector<float> ones(block, 1.0F);
    const float* weights = out_.importance_use == ImportanceUse::required ? ones.data() : nullptr;
    for (const std::uint64_t column : unweighted_) {
      if (column < first_column || column >= first_column + elements) continue;
      for (std::uint64_t at = column - first_column; at < values.size(); at += elements) {
        out_.quantize(values.data() + at, 1, block, weights,
                      blocks.data() + at / block * info(out_.type).bytes);
      }
    }
  }

  Result<void> check_output(std::uint64_t first, std::span<const std::byte> blocks) const {
    const auto bad = validate::first_bad_block(out_.type, blocks);
    if (!bad) return {};
    const Place at = place(from_, out_.type, first, *bad);
    return fail(
        Errc::unsupported,
        fmt::format("tensor '{}': row {}, the block from element {} has a scale that {} "
                    "cannot hold",
                    from_.name, at.row, at.element, info(out_.type).name),
        "give the tensor another type by --tensor-type, for example BF16: its values are too "
        "large for this one");
  }

  GgufTensor from_;
  const RowCodec& in_;
  const RowCodec& out_;
  std::shared_ptr<const std::vector<float>> importance_;
  std::vector<std::uint64_t> unweighted_; ///< first columns of blocks with zero weights only
  OnBadResult on_bad_;
  std::uint32_t limit_;
};

} // namespace

std::shared_ptr<const TensorSource>
quantized_source(const GgufTensor& from, TensorType to,
                 std::shared_ptr<const std::vector<float>> importance, OnBadResult on_bad) {
  return std::make_shared<Quantized>(from, to, std::move(importance), on_bad);
}

std::shared_ptr<const TensorSource> checked_source(const GgufTensor& from) {
  return std::make_shared<Checked>(from);
}

std::vector<std::uint64_t> zero_weighted_blocks(TensorType type,
                                                const std::vector<float>& importance) {
  std::vector<std::uint64_t> columns;
  if (codec(type).importance_use == ImportanceUse::ignored) return columns;
  const std::uint64_t block = info(type).block;
  for (std::uint64_t at = 0; at + block <= importance.size(); at += block) {
    const auto first = importance.begin() + static_cast<std::ptrdiff_t>(at);
    const auto last = first + static_cast<std::ptrdiff_t>(block);
    if (std::all_of(first, last, [](float w) { return w == 0; })) columns.push_back(at);
  }
  return columns;
}

} // namespace modeld::quantize
