// SPDX-License-Identifier: Apache-2.0
#include "fuzz.hpp"

#include "validate/shard_index.hpp"

using namespace modeld::fuzz;
using namespace modeld::validate;

int modeld::fuzz::fuzz_shard_index(const std::uint8_t* data, std::size_t size) {
  const auto text = bytes_of(data, size);
  const auto strict = check_shard_index(text, "i.json", Profile::strict);
  const auto compat = check_shard_index(text, "i.json", Profile::compat);
  require(!strict.accepted() || compat.accepted(), "strict accepts what compat refuses");
  if (!compat.accepted()) return 0;
  require(!compat.value->entries.empty(), "an empty map");
  for (const ShardIndex::Entry& entry : compat.value->entries) {
    require(entry.file < compat.value->files.size(), "an entry without a file");
    require(compat.value->find(entry.tensor) == &entry, "an entry that is not found by its name");
  }
  for (const std::string& name : compat.value->files)
    require(!shard_name_fault(name).has_value() && name.find('/') == std::string::npos,
            "a name that leads elsewhere");
  return 0;
}
