// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::quantize {

/// What GGUF writes for a token's type; SentencePiece has the same numbers.
enum class TokenType : std::int32_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6,
};

/// A SentencePiece model file (tokenizer.model, spiece.model): the parts that conversion needs.
struct SentencePieceModel {
  enum class Algorithm : std::uint8_t { unigram = 1, bpe = 2, word = 3, character = 4 };

  struct Piece {
    std::string text; ///< valid UTF-8, not empty, unique
    float score = 0;
    TokenType type = TokenType::normal;
  };

  std::vector<Piece> pieces;
  Algorithm algorithm = Algorithm::unigram;
  bool byte_fallback = false;
  bool treat_whitespace_as_suffix = false;
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
  std::string precompiled_charsmap; ///< bytes

  /// Reads the protobuf and checks what the reference's library checks before it loads a model:
  /// exactly one unknown piece, no empty and no repeated piece, byte pieces only with byte
  /// fallback and then all 256. malformed, with the offset, for anything else. `what` names the
  /// file in messages. No length is believed before it is compared with what is left.
  static Result<SentencePieceModel> parse(std::string_view bytes, std::string_view what);
};

/// "<0x0A>" gives 10; -1 for any other text. Upper-case digits only, as the library writes them.
int byte_of_piece(std::string_view piece);

} // namespace modeld::quantize
