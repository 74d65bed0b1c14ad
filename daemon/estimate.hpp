// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/gguf/gguf_model.hpp"
#include "schema/file_set.hpp"
#include "schema/result.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace modeld::daemon {

/// How large a model becomes, on the disk and in the memory of a runtime, before anything is made.
struct Estimate {
  struct Variant {
    std::string recipe;           ///< "Q4_K_M"; of a finished file its path
    std::uint64_t file_bytes = 0; ///< exact
    double bits_per_weight = 0;
    std::string note; ///< what it needs besides, or why it cannot be made; then file_bytes is 0
  };

  std::string architecture; ///< general.architecture
  std::string name;         ///< general.name
  std::uint64_t parameters = 0;
  std::uint64_t trained_context = 0; ///< tokens; 0: not told
  std::uint64_t context = 0;         ///< tokens that the memory is told for
  std::uint64_t cache_bytes = 0;     ///< keys and values of `context` tokens as F16, and states
  std::uint64_t buffer_bytes = 0;    ///< what a runtime computes in, roughly
  std::vector<Variant> variants;

  std::uint64_t memory_bytes(const Variant& variant) const {
    return variant.file_bytes + cache_bytes + buffer_bytes;
  }
};

/// The cache and buffers of a model with this metadata. `context` 0: what it was trained for, at
/// most 8192.
///
/// Keys and values: for each layer the number of its key and value heads times the length of both,
/// 2 bytes each; sliding windows are not taken off. States of recurrent layers: 4 bytes for each
/// element of convolution and state. Buffers: a batch of 512 tokens, 4 bytes for each element of
/// the logits and of the widest layer.
Estimate estimate_memory(const quantize::GgufModel& model, std::uint64_t context);

/// A folder with a checkpoint: every recipe. One with GGUF files: each of them, split ones once.
/// Errors as those of conversion.
Result<Estimate> estimate(const FileSet& files, std::uint64_t context);

std::string estimate_text(const Estimate& estimate);
boost::json::object estimate_json(const Estimate& estimate);
Result<Estimate> estimate_from_json(const boost::json::object& object);

} // namespace modeld::daemon
