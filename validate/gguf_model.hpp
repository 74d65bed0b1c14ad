// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "validate/finding.hpp"
#include "validate/gguf.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// What the metadata and the tensors of a GGUF model say about each other: rules GX-01 to GX-19
// (validation.md 4.3). Structure was accepted before; nothing here reads tensor data.

namespace modeld::validate {

/// A model in one file, or the parts of a split: the metadata of the first, the tensors of all.
class GgufModelView {
public:
  explicit GgufModelView(const GgufHeader& header) : header_(header) { add_tensors(header); }
  /// The tensors of a further part; both must outlive this.
  void add_tensors(const GgufHeader& part);

  const GgufHeader& header() const { return header_; }
  const std::vector<const GgufTensorInfo*>& tensors() const { return tensors_; }
  const GgufTensorInfo* find(std::string_view tensor) const;
  const GgufValueView* key(std::string_view name) const { return header_.find(name); }

  /// general.architecture; empty where there is none.
  std::string_view architecture() const;
  /// The value of "<architecture>.<name>".
  const GgufValueView* model_key(std::string_view name) const;
  std::optional<std::uint64_t> model_number(std::string_view name) const;
  /// The number, or the layer's element of an array; nothing where there is neither.
  std::optional<std::uint64_t> layer_number(std::string_view name, std::uint64_t layer) const;
  /// Number of "blk.N" that tensors are named after, and the largest N plus one.
  struct Blocks {
    std::uint64_t distinct = 0;
    std::uint64_t end = 0;
    std::vector<bool> present;
  };
  Blocks blocks() const;

private:
  const GgufHeader& header_;
  std::vector<const GgufTensorInfo*> tensors_;
  NameIndex names_;
};

/// All GX rules that apply to what the file is: a model, an adapter or a projector.
void check_gguf_model(const GgufModelView& model, Report& report);

// Parts of the above.
void check_gguf_tokenizer(const GgufModelView& model, Report& report);  ///< GX-01 to GX-08
void check_gguf_shape(const GgufModelView& model, Report& report);      ///< GX-10 to GX-13, GX-19
void check_gguf_lists(const GgufModelView& model, Report& report);      ///< GX-14
void check_gguf_tensor_set(const GgufModelView& model, Report& report); ///< GX-15, GX-16
void check_gguf_adapter(const GgufModelView& model, Report& report);    ///< GX-17
void check_gguf_projector(const GgufModelView& model, Report& report);  ///< GX-18

/// Whether any architecture that llama.cpp v0.4.0 knows has a tensor of this name.
bool is_known_gguf_tensor(std::string_view name);

} // namespace modeld::validate
