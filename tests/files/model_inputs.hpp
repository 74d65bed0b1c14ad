// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/gguf/gguf_model.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::test {

/// A tensor of F32 whose values are a stream defined by its name (see tests/golden/materialize.py
/// for the idea), of the spread that weights have.
quantize::GgufTensor named_tensor(std::string name, std::vector<std::uint64_t> ne);

/// A Llama of `layers` layers with rows of `width`, and `experts` of them in each layer where there
/// are any: only what the quantizer asks for.
quantize::GgufModel small_llama(std::uint64_t width = 256, std::uint32_t layers = 1,
                                std::uint32_t experts = 0);

void write_model(const quantize::GgufModel& model, const std::filesystem::path& path);

/// What an importance matrix is to have in it.
struct MatrixTraits {
  bool unused_expert = false; ///< of each stack, the second one: counts and sums are zero
  bool zeros = false;         ///< a third of all sums are zero
  std::string leave_out = {}; ///< no entries for tensors with this in their names
  std::string bad = {};       ///< "nan", "inf", "negative", "long": one entry spoilt this way
};

/// An importance matrix for every weight of a model that takes one: positive sums, a stream
/// defined by the tensor's name. In the GGUF form, or where the name ends in .dat in the old one.
void write_matrix(const quantize::GgufModel& model, const MatrixTraits& traits,
                  const std::filesystem::path& path);

/// Reads a GGUF file whole.
quantize::GgufModel read_model(const std::filesystem::path& path);

} // namespace modeld::test
