// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "repository_rows.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::test {

/// REPO of validation.md 6: a llama-type repository of two shards with configuration, tokenizer and
/// index; hidden 8, heads 2, kv 1, head_dim 4, layers 2, ffn 16, vocab 16.
struct HfRepository {
  struct Tensor {
    std::vector<std::uint64_t> shape;
    std::string dtype = "F32";
    int shard = 1;
  };
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> config; ///< key and JSON text
  std::vector<std::pair<std::string, int>> vocab;
  std::vector<std::pair<std::string, int>> added;
  std::string tokenizer_config = "{}";
  Files other;

  HfRepository();
  void layer(int index, int shard);
  Files files() const;
};

} // namespace modeld::test
