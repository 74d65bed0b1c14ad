// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "builders.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::test {

/// Writes GGUF in the notation of validation.md 6, in either byte order and any version.
struct GgufWriter {
  bool big_endian = false;
  bool short_lengths = false;

  template <class T>
  std::string number(T value) const {
    std::string out = le(value);
    return big_endian ? std::string(out.rbegin(), out.rend()) : out;
  }
  std::string u32(std::uint64_t v) const { return number(static_cast<std::uint32_t>(v)); }
  std::string i32(std::int64_t v) const { return number(static_cast<std::int32_t>(v)); }
  std::string u16(std::uint64_t v) const { return number(static_cast<std::uint16_t>(v)); }
  std::string u64(std::uint64_t v) const { return number(v); }
  std::string f32(float v) const;
  std::string len(std::uint64_t v) const { return short_lengths ? u32(v) : u64(v); }
  /// S(s)
  std::string str(std::string_view s) const { return len(s.size()) + std::string(s); }
  /// KV(k,type,v)
  std::string kv(std::string_view key, std::int64_t type, std::string_view value) const {
    return str(key) + i32(type) + std::string(value);
  }
  std::string kv_u32(std::string_view key, std::uint64_t v) const { return kv(key, 4, u32(v)); }
  std::string kv_str(std::string_view key, std::string_view v) const { return kv(key, 8, str(v)); }
  std::string kv_f32(std::string_view key, float v) const { return kv(key, 6, f32(v)); }
  /// ARR(t,n,...)
  std::string arr(std::int64_t type, std::uint64_t count, std::string_view items) const {
    return i32(type) + len(count) + std::string(items);
  }
  /// TI(n,dims,type,off)
  std::string ti(std::string_view name, const std::vector<std::uint64_t>& dims, std::int64_t type,
                 std::uint64_t offset) const;
  /// A = KV("general.architecture",8,S("llama"))
  std::string arch(std::string_view name = "llama") const {
    return kv_str("general.architecture", name);
  }
};

/// GG(kvs;tis;data) with the fields that a row overrides.
struct Gguf {
  std::vector<std::string> kvs;
  std::vector<std::string> tis;
  std::string data;
  std::uint32_t ver = 3;
  std::optional<std::uint64_t> nt = {};
  std::optional<std::uint64_t> nk = {};
  std::size_t align = 32;
  GgufWriter w = {};
  char pad = '\0';

  std::string str() const;
};

/// GOOD = GG(A; a8; Z(32))
Gguf good(const GgufWriter& w = {});

/// A one-layer llama model, all F32 zero: embedding 32, heads 2, kv 1, ffn 32, vocab 8.
struct Tiny {
  struct Tensor {
    std::string name;
    std::vector<std::uint64_t> dims;
    std::int64_t type = 0;
    std::string data; ///< empty: zeros
  };
  GgufWriter w;
  std::vector<std::pair<std::string, std::string>> kvs; ///< key and encoded KV
  std::vector<Tensor> tensors;

  explicit Tiny(const GgufWriter& writer = {});
  void set(std::string_view key, std::string kv);
  void erase(std::string_view key);
  Tensor& tensor(std::string_view name);
  void erase_tensor(std::string_view name);
  std::string str() const;
};

} // namespace modeld::test
