// SPDX-License-Identifier: Apache-2.0
#include "validate/name_index.hpp"

#include <bit>
#include <cstring>
#include <random>

namespace modeld::validate {
namespace {

struct HashKey {
  std::uint64_t a;
  std::uint64_t b;
};

const HashKey& key() {
  static const HashKey value = [] {
    std::random_device device;
    const auto word = [&] { return std::uint64_t{device()} << 32 | device(); };
    return HashKey{word(), word() | 1};
  }();
  return value;
}

/// High and low half of the product, folded: every input bit reaches every output bit.
std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t load(const char* at, std::size_t bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, bytes);
  return word;
}

} // namespace

std::uint64_t seeded_hash(std::string_view text) {
  const HashKey& k = key();
  std::uint64_t state = k.a ^ text.size();
  const char* at = text.data();
  std::size_t left = text.size();
  for (; left > 16; left -= 16, at += 16)
    state = mix(load(at, 8) ^ k.b, load(at + 8, 8) ^ state);
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  if (left >= 8) {
    low = load(at, 8);
    high = load(at + left - 8, 8);
  } else if (left > 0) {
    low = load(at, left);
  }
  return mix(mix(low ^ k.b, high ^ state), k.a ^ 0x9E3779B97F4A7C15ULL);
}

void NameIndex::reserve(std::size_t count) {
  if (count * 2 > slots_.size()) grow(count);
}

void NameIndex::grow(std::size_t count) {
  std::vector<Slot> old(std::bit_ceil(count * 2 < 16 ? std::size_t{16} : count * 2));
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.position_plus_one == 0) continue;
    std::size_t i = slot_of(slot.tag);
    while (slots_[i].position_plus_one != 0)
      i = (i + 1) & (slots_.size() - 1);
    slots_[i] = slot;
  }
}

} // namespace modeld::validate
