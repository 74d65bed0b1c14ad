// SPDX-License-Identifier: Apache-2.0
#include "quantize/quantized_source.hpp"

#include "quantize/block_check.hpp"
#include "quantize/row_codec.hpp"

#include <fmt/format.h>

#include <algorithm>

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

Result<void> check_input(const GgufTensor& tensor, std::uint64_t first,
                         std::span<const std::byte> rows) {
  const auto bad = first_bad_block(tensor.type, rows);
  if (!bad) return {};
  const Place at = place(tensor, tensor.type, first, *bad);
  return fail(Errc::malformed,
              fmt::format("tensor '{}' ({}): row {}, element {} is NaN or infinite", tensor.name,
                          info(tensor.type).name, at.row, at.element),
              "the source file is damaged or was trained into a bad state; nothing useful can be "
              "made from it");
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

class Quantized final : public TensorSource {
public:
  Quantized(const GgufTensor& from, TensorType to,
            std::shared_ptr<const std::vector<float>> importance)
      : from_(from), in_(codec(from.type)), out_(codec(to)), importance_(std::move(importance)) {}

  Result<void> read_rows(std::uint64_t first, std::uint64_t count,
                         std::span<std::byte> out) const override {
    // A few rows at a time, so that the floats stay in the cache.
    constexpr std::uint64_t k_elements = 32768;
    const std::uint64_t row_elements = from_.row_elements();
    const std::uint64_t step = std::clamp<std::uint64_t>(k_elements / row_elements, 1, count);
    std::vector<std::byte> raw(step * from_.row_bytes());
    std::vector<float> floats(step * row_elements);
    const std::uint64_t out_row = out.size() / count;
    for (std::uint64_t done = 0; done < count;) {
      const std::uint64_t row = first + done;
      const std::uint64_t rows = std::min({step, count - done, rows_left_in_expert(row)});
      const auto in = std::span(raw).first(rows * from_.row_bytes());
      MODELD_TRY(from_.source->read_rows(row, rows, in));
      MODELD_TRY(check_input(from_, row, in));
      in_.dequantize(in.data(), rows, row_elements, floats.data());
      const auto blocks = out.subspan(done * out_row, rows * out_row);
      out_.quantize(floats.data(), rows, row_elements, importance_of(row), blocks.data());
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
  const float* importance_of(std::uint64_t row) const {
    if (!importance_) return nullptr;
    return importance_->data() + row / expert_rows() * from_.row_elements();
  }

  Result<void> check_output(std::uint64_t first, std::span<const std::byte> blocks) const {
    const auto bad = first_bad_block(out_.type, blocks);
    if (!bad) return {};
    const Place at = place(from_, out_.type, first, *bad);
    return fail(Errc::unsupported,
                fmt::format("tensor '{}': row {}, the block from element {} has a scale that {} "
                            "cannot hold",
                            from_.name, at.row, at.element, info(out_.type).name),
                "its values are too large for the type; give the tensor another type by "
                "--tensor-type, for example BF16");
  }

  GgufTensor from_;
  const RowCodec& in_;
  const RowCodec& out_;
  std::shared_ptr<const std::vector<float>> importance_;
};

} // namespace

std::shared_ptr<const TensorSource>
quantized_source(const GgufTensor& from, TensorType to,
                 std::shared_ptr<const std::vector<float>> importance) {
  return std::make_shared<Quantized>(from, to, std::move(importance));
}

std::shared_ptr<const TensorSource> checked_source(const GgufTensor& from) {
  return std::make_shared<Checked>(from);
}

} // namespace modeld::quantize
