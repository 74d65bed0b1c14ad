// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "validate/gguf_model.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What a model of an architecture is made of, by schema/gguf_tensors.txt. Private to this folder.

namespace modeld::validate {

/// The tensors of one architecture. Views into the program's own data.
class ModelTensors {
public:
  /// One of these lists, all of it; `none` allows for nothing at all.
  struct Need {
    std::vector<std::vector<std::string>> alternatives;
    bool none = false;
    bool in_blocks = false; ///< of each block; names without "blk.N."
  };

  /// Nothing where the architecture is not described.
  static std::optional<ModelTensors> of(std::string_view architecture);

  const std::vector<Need>& needs() const { return needs_; }
  /// Its dimensions as they stand in the table, "" where any will do; nothing for a name that the
  /// architecture has not. `name` as LocalName has it.
  std::optional<std::string_view> dims(std::string_view name, bool in_blocks) const;

private:
  void read_line(std::string_view line, bool in_blocks);
  std::string take_name(std::string_view word, bool in_blocks);

  std::vector<Need> needs_;
  std::map<std::string, std::string_view, std::less<>> dims_[2]; ///< trunk and blocks
};

/// "blk.3.attn_q.weight" is "attn_q.weight" of block 3, "enc.blk.3.attn_q.weight" is
/// "enc.attn_q.weight" of block 3 of a tower of its own.
struct LocalName {
  std::string name;
  std::string_view tower; ///< "", "enc." or "dec."
  std::optional<std::uint64_t> block;

  static LocalName of(std::string_view name);
  /// The other way round.
  static std::string whole(std::string_view name, std::uint64_t block);
};

/// A tensor whose shape is not the one that the metadata make.
struct TensorMisfit {
  const GgufTensorInfo* tensor = nullptr;
  std::vector<std::optional<std::uint64_t>> expected; ///< fastest first; none where any will do
  std::string because;                                ///< the keys that say so
};
std::vector<TensorMisfit> find_misfits(const GgufModelView& model, const ModelTensors& table);

/// Names of tensors that the model cannot do without and has not. Blocks that have no tensor at all
/// are left to GX-10.
std::vector<std::string> find_lacking(const GgufModelView& model, const ModelTensors& table);

/// "[8, ?]".
std::string shape_text(const std::vector<std::optional<std::uint64_t>>& dims);

} // namespace modeld::validate
