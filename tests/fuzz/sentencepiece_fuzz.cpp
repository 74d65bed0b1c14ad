// SPDX-License-Identifier: Apache-2.0
// tokenizer.model.
#include "fuzz.hpp"

#include "quantize/tokenizer/sentencepiece_model.hpp"

#include <set>

using namespace modeld::fuzz;
using namespace modeld::quantize;

int modeld::fuzz::fuzz_sentencepiece(const std::uint8_t* data, std::size_t size) {
  const auto model = SentencePieceModel::parse(text_of(data, size), "tokenizer.model");
  if (!model) return 0;
  std::set<std::string_view> seen;
  std::size_t unknown = 0;
  std::size_t bytes = 0;
  for (const SentencePieceModel::Piece& piece : model->pieces) {
    require(!piece.text.empty(), "an empty piece");
    require(seen.insert(piece.text).second, "a piece that is there twice");
    bytes += piece.text.size();
    unknown += piece.type == TokenType::unknown ? 1 : 0;
  }
  require(unknown == 1, "another number of unknown pieces");
  require(bytes <= size, "more text than the file has");
  return 0;
}
