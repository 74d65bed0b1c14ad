// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/tokenizer/hf_tokenizer.hpp"
#include "schema/result.hpp"

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace modeld::quantize {

/// Turns text into ids, as the tokenizers library (0.22) does with the same definition: added
/// tokens are cut out, the rest is normalized, cut by the pre-tokenizer and encoded by the model,
/// and the post-processor puts special tokens around it. Truncation and padding are not done.
/// Borrows the tokenizer; immutable; any thread.
class Encoder {
public:
  /// unsupported: a part of a kind that we do not know; malformed.
  static Result<Encoder> make(const HfTokenizer& tokenizer);
  Encoder(Encoder&&) noexcept;
  Encoder& operator=(Encoder&&) noexcept;
  ~Encoder();

  enum class Special { leave_out, add };
  /// The text is UTF-8.
  Result<std::vector<std::uint32_t>> encode(std::string_view text, Special special) const;

private:
  struct Parts;
  explicit Encoder(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

} // namespace modeld::quantize
