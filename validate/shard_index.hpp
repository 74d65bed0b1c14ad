// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/file_set.hpp"
#include "validate/finding.hpp"
#include "validate/name_index.hpp"
#include "validate/safetensors.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// The index of a sharded checkpoint (`*.safetensors.index.json`) and the question which files hold
// the model's weights. Rules IX-01 to IX-15 (validation.md 1.6), failure case A14.

namespace modeld::validate {

struct ShardIndex {
  struct Entry {
    std::string tensor;
    std::uint32_t file = 0; ///< position in files
    std::uint64_t offset = 0;
  };
  std::vector<Entry> entries;     ///< in the order of the file
  std::vector<std::string> files; ///< each once, sorted; plain names, safe to join (IX-04)
  std::optional<std::uint64_t> total_size;

  /// Null where the tensor is not in the map. Constant time.
  const Entry* find(std::string_view tensor) const;

private:
  friend class ShardIndexReader;
  NameIndex index_;
};

/// Why a name may not stand in an index, or nothing: one plain file name on every system that
/// people use (IX-04). Lexical, before anything is joined.
std::optional<std::string_view> shard_name_fault(std::string_view name);

/// Parses and checks an index by itself: IX-01 to IX-05.
Checked<ShardIndex> check_shard_index(std::span<const std::byte> text, std::string_view path,
                                      Profile profile = Profile::strict, const Limits& limits = {});

/// A shard that was read.
struct ShardHeader {
  std::string_view file;
  const SafetensorsHeader* header = nullptr;
};

/// Checks the map against the headers of the shards that are there: IX-07 to IX-10.
void check_shards(const ShardIndex& index, std::span<const ShardHeader> shards, Report& report);

/// Which files hold the weights.
struct WeightFiles {
  std::string index;                 ///< path of the index; empty for a single file
  std::vector<std::string> files;    ///< exactly these, sorted
  std::vector<std::string> unlisted; ///< weight files beside them that do not belong
};

/// Two full copies under the two vendors' names may lie side by side; one is wanted.
enum class WeightLayout : std::uint8_t {
  hugging_face, ///< model*.safetensors
  mistral,      ///< consolidated*.safetensors
};

/// Decides by the index, not by guesses about names: exactly its files. Without one,
/// `model.safetensors` (or `consolidated.safetensors`, as the layout says), else a complete
/// numbered set, else the only safetensors file. Refuses where several candidates remain
/// (conflict), where there is no weight (not_found), and where the only weights are pickles
/// (unsupported, rule PK-01). Looks at the top folder only.
Result<WeightFiles> select_weight_files(const FileSet& files,
                                        WeightLayout layout = WeightLayout::hugging_face);

/// Everything about the safetensors weights of a folder before it is mapped for work: the index,
/// every shard's header, and the two against each other (ST, IX). No rule of config or tokenizer.
struct WeightSet {
  WeightFiles selection;
  std::optional<ShardIndex> index;
  std::vector<SafetensorsHeader> headers; ///< in the order of selection.files
};
Checked<WeightSet> check_weight_set(const FileSet& files, Profile profile = Profile::strict,
                                    WeightLayout layout = WeightLayout::hugging_face,
                                    const Limits& limits = {});
/// For a caller that wants the headers or one reason.
Result<WeightSet> read_weight_set(const FileSet& files, Profile profile = Profile::strict,
                                  WeightLayout layout = WeightLayout::hugging_face);

} // namespace modeld::validate
