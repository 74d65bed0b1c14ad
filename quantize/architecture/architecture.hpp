// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/architecture/expr.hpp"
#include "quantize/architecture/pattern.hpp"
#include "quantize/tokenizer/tokenizer.hpp"
#include "schema/result.hpp"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// A model family as data: one file of schema/architectures/ (doc/adding-a-model.md tells how it is
// written). Loading checks everything that can be checked without a model.

namespace modeld::quantize {

/// How a metadata key is written.
enum class KeyType { u16, u32, u64, i32, f32, boolean, text, array, u32_array, number_or_array };

/// One line of `keys`, in the order of the file.
struct KeyRule {
  enum class Kind {
    key,    ///< "name: type = expr", "name?: ..." is left out where the value is null
    let,    ///< "let name = expr" sets a configuration key for the lines below
    refuse, ///< "refuse 'why' when cond": the reference writes a wrong file; force does too
    stop,   ///< "stop 'why' when cond": there is no file to write
    remove, ///< "remove name": a key written above goes away
  };
  Kind kind = Kind::key;
  std::string name; ///< the full GGUF key; of a let: the configuration key; of a refuse: the reason
  KeyType type = KeyType::u32;
  bool optional = false;
  std::optional<Expr> value;
  std::optional<Expr> when;
};

/// A step of a tensor's chain.
struct OpRule {
  std::string name;
  std::vector<Expr> arguments;
};

/// What comes out of a source tensor.
struct TensorOutput {
  NamePattern to; ///< without ".weight" and ".bias", which are kept from the source's name
  std::vector<OpRule> ops;
  /// "", "f32", "f16" or "file" (the file's type, no rule of its own).
  std::string type;
  std::optional<std::string> suffix; ///< instead of the source's
  std::optional<Expr> number;        ///< what {bid} of `to` becomes, instead of the source's
  std::optional<Expr> when;
};

/// One source tensor (by any of the names), one or more outputs.
struct TensorRule {
  std::vector<NamePattern> from;
  std::vector<TensorOutput> outputs; ///< none: the tensor is left out on purpose
  std::optional<Expr> when;
  /// Number of the group whose parts come out together. The rule's outputs apply to all of the
  /// rule's tensors stacked by {xid}, or to the single one where its name has no {xid}.
  std::optional<std::size_t> group;
  /// An array of block numbers: the outputs come once for each, whatever number the name has.
  std::optional<Expr> blocks;
  /// Left out where the output of this name holds the same bytes (an output tied to the embedding).
  std::string unless_equal;
};

/// Tensors that come out together, when the last of them has arrived; rules in the order of the
/// file.
struct GroupRule {
  std::string name;
  std::optional<Expr> count; ///< of {xid}; none where the parts have no {xid}
  /// All parts joined along this dimension into the outputs of the first rule.
  std::optional<std::int64_t> join;
  /// The same along a new first dimension.
  bool stack = false;
};

/// A tensor that no checkpoint holds.
struct GeneratedRule {
  NamePattern to; ///< with its suffix; {bid} makes one for each block
  OpRule by;      ///< a named generator, or values(array)
  std::optional<Expr> when;
};

/// A change of source names before anything looks at them.
struct RenameRule {
  enum class Kind { replace, prefix, suffix, add_prefix };
  Kind kind = Kind::replace;
  std::string text;
  std::string with;
  std::optional<Expr> when;
  /// Of a prefix: the number that fills {bid} in `with`. It sees the number that {bid} in `text`
  /// stood for as `bid`.
  std::optional<Expr> bid;
};

/// Names that no rule for tensors gets to see.
struct DropRule {
  NamePattern name;
  std::optional<Expr> when;
};

struct Assignment {
  std::string name; ///< of a key, or of a member of one: "vision.image_size"
  Expr value;
};

/// The tokenizer part.
struct TokenizerPart {
  TokenizerKind kind = TokenizerKind::bpe;
  std::vector<KeyRule> before;
  std::vector<KeyRule> after;
  std::vector<std::pair<std::string, Expr>> by_text;
  std::vector<std::pair<std::string, Expr>> by_id;
  std::vector<std::pair<std::string, Expr>> second_round;
  std::optional<Expr> when; ///< the part is used only where this holds; the last has none
  std::optional<Expr> pad_multiple;
  bool pad_multiple_from_config = false;
  bool per_layer_vocab_first = true;
};

/// What a family's file is made into.
enum class FamilyKind {
  model,
  adapter,   ///< what stands beside a model in its checkpoint; there is no other metadata
  projector, ///< the vision and audio towers of a multimodal model (--mmproj)
};

struct Architecture {
  std::string file; ///< "llama.toml"
  FamilyKind kind = FamilyKind::model;
  std::string arch;                 ///< general.architecture
  std::string title;                ///< for people
  std::vector<std::string> classes; ///< names in config.json's "architectures"
  std::optional<Expr> when;         ///< further condition, where files share a class
  bool raw_config = false;          ///< reads config.json as it is, without class defaults
  /// Options of the converter that this family knows: "mtp", "dense_modules", "fuse_gate_up_exps",
  /// or, where the reference pays no heed to the latter, "separate_gate_up_exps".
  std::vector<std::string> options;
  std::optional<Expr> adapters; ///< names of adapters that stand beside the model
  std::vector<Assignment> prepare;
  /// Lines of keys that stand before general.type: what the reference writes while it looks at
  /// tensors. Not written for a vocabulary alone.
  std::vector<KeyRule> early;
  std::vector<KeyRule> keys;
  std::vector<RenameRule> rename;
  std::vector<DropRule> drop;
  std::vector<NamePattern> keep; ///< where there are any: all other tensors are left out
  std::vector<TensorRule> tensors;
  std::vector<GroupRule> groups;
  std::vector<GeneratedRule> generated;
  std::vector<TokenizerPart> tokenizers;
  bool knows(std::string_view option) const;
  /// Defaults of configuration classes, by model_type: values, or expressions over the config. Of a
  /// part: "gemma3/vision_config".
  std::map<std::string, std::vector<Assignment>, std::less<>> defaults;
};

/// What is shared by all: lists of keys by name, names of tensors that no family wants.
struct StandardRules {
  std::map<std::string, std::vector<KeyRule>, std::less<>> key_groups;
  std::vector<NamePattern> drop_text; ///< parts of other towers in multimodal checkpoints
  std::vector<NamePattern> drop_any;  ///< buffers that hold no weight
  std::vector<Assignment> defaults;   ///< of every configuration class
  /// model_type of classes that refuse a list of layer types that is not one for each layer.
  std::vector<std::string> layer_types_checked;
};

/// All families, loaded once from the program's own files.
class ArchitectureSet {
public:
  /// internal, naming file and line, where one of our files is wrong.
  static Result<ArchitectureSet>
  load(std::span<const std::pair<std::string_view, std::string_view>> files);
  /// The files of schema/architectures/. Loaded at the first call; any thread.
  static Result<const ArchitectureSet*> builtin();

  std::span<const Architecture> all() const { return all_; }
  const StandardRules& standard() const { return standard_; }
  /// Those that read a class name, in the order of their files: projectors alone, or all others.
  std::vector<const Architecture*> find(std::string_view class_name,
                                        FamilyKind kind = FamilyKind::model) const;
  /// Defaults for a model_type; null where the configuration class is unknown.
  const std::vector<Assignment>* defaults(std::string_view model_type) const;
  /// Defaults for parts of a configuration whose class follows from the whole's: the member (or a
  /// path, "thinker_config/vision_config") and what it gets.
  std::vector<std::pair<std::string_view, const std::vector<Assignment>*>>
  part_defaults(std::string_view model_type) const;
  /// Every class name, sorted.
  std::vector<std::string_view> class_names(FamilyKind kind = FamilyKind::model) const;
  /// The registered names most like one that is not registered.
  std::vector<std::string_view> nearby(std::string_view class_name, FamilyKind kind) const;

private:
  std::vector<Architecture> all_;
  StandardRules standard_;
};

/// Names of the closed set of tensor operations and of generators.
bool known_op(std::string_view name);
bool known_generator(std::string_view name);

} // namespace modeld::quantize
