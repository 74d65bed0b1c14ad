// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace modeld::validate {

/// A hash with a key of this process's own, so that nobody can prepare names that all collide.
std::uint64_t seeded_hash(std::string_view text);

/// From names to positions in a list that the caller keeps: finds duplicates and looks up in
/// constant time. Holds no text; each call takes `name_at`, a function from a position to its
/// name. At most 2^32 - 2 names. Copies and moves with its list.
class NameIndex {
public:
  /// Makes room, so that inserting `count` names does not move the table.
  void reserve(std::size_t count);

  /// Enters a name for `position`; where the name is there already, gives the position that it
  /// has and changes nothing.
  template <class NameAt>
  std::optional<std::uint32_t> insert(std::string_view name, std::uint32_t position,
                                      NameAt&& name_at) {
    if ((used_ + 1) * 2 > slots_.size()) grow(used_ + 1);
    const std::uint64_t hash = seeded_hash(name);
    for (std::size_t i = slot_of(hash);; i = (i + 1) & (slots_.size() - 1)) {
      Slot& slot = slots_[i];
      if (slot.position_plus_one == 0) {
        slot = Slot{static_cast<std::uint32_t>(hash), position + 1};
        ++used_;
        return std::nullopt;
      }
      if (slot.tag == static_cast<std::uint32_t>(hash) &&
          name_at(slot.position_plus_one - 1) == name)
        return slot.position_plus_one - 1;
    }
  }

  template <class NameAt>
  std::optional<std::uint32_t> find(std::string_view name, NameAt&& name_at) const {
    if (slots_.empty()) return std::nullopt;
    const std::uint64_t hash = seeded_hash(name);
    for (std::size_t i = slot_of(hash);; i = (i + 1) & (slots_.size() - 1)) {
      const Slot& slot = slots_[i];
      if (slot.position_plus_one == 0) return std::nullopt;
      if (slot.tag == static_cast<std::uint32_t>(hash) &&
          name_at(slot.position_plus_one - 1) == name)
        return slot.position_plus_one - 1;
    }
  }

private:
  struct Slot {
    std::uint32_t tag = 0; ///< low half of the hash
    std::uint32_t position_plus_one = 0;
  };

  /// The low half picks the slot too, so that growing needs no names.
  std::size_t slot_of(std::uint64_t hash) const {
    return static_cast<std::uint32_t>(hash) & (slots_.size() - 1);
  }
  void grow(std::size_t count);

  std::vector<Slot> slots_; ///< a power of two, at most half full
  std::size_t used_ = 0;
};

} // namespace modeld::validate
