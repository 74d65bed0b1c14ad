// SPDX-License-Identifier: Apache-2.0
#include "quantize/tokenizer/sentencepiece_model.hpp"

#include "quantize/encoder/utf8_text.hpp"
#include "quantize/tokenizer/protobuf_reader.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <unordered_set>

// sentencepiece_model.proto, the fields read here:
//   ModelProto      1 pieces (repeated)  2 trainer_spec  3 normalizer_spec
//   SentencePiece   1 piece (string)  2 score (float)  3 type (enum, default 1)
//   TrainerSpec     3 model_type (enum, default 1)  24 treat_whitespace_as_suffix  35 byte_fallback
//   NormalizerSpec  2 precompiled_charsmap  3 add_dummy_prefix  4 remove_extra_whitespaces
//                   5 escape_whitespaces (all three default true)

namespace modeld::quantize {
namespace {

using Field = ProtobufReader::Field;
using Wire = ProtobufReader::Field::Wire;

template <class Take>
Result<void> each_field(std::string_view message, Take take) {
  ProtobufReader reader(message);
  while (!reader.done()) {
    MODELD_ASSIGN(const Field field, reader.next());
    MODELD_TRY(take(field));
  }
  return {};
}

Result<SentencePieceModel::Piece> read_piece(std::string_view message) {
  SentencePieceModel::Piece piece;
  MODELD_TRY(each_field(message, [&](const Field& field) -> Result<void> {
    if (field.number == 1 && field.wire == Wire::bytes) {
      piece.text = field.bytes;
    } else if (field.number == 2 && field.wire == Wire::fixed32) {
      piece.score = std::bit_cast<float>(static_cast<std::uint32_t>(field.number_value));
    } else if (field.number == 3 && field.wire == Wire::varint) {
      if (field.number_value < 1 || field.number_value > 6) {
        return fail(Errc::malformed,
                    fmt::format("piece type {}, known are 1 to 6", field.number_value));
      }
      piece.type = static_cast<TokenType>(field.number_value);
    }
    return {};
  }));
  return piece;
}

Result<void> read_trainer(std::string_view message, SentencePieceModel& model) {
  return each_field(message, [&](const Field& field) -> Result<void> {
    if (field.wire != Wire::varint) return {};
    if (field.number == 3) {
      if (field.number_value < 1 || field.number_value > 4) {
        return fail(Errc::malformed,
                    fmt::format("model type {}, known are 1 to 4", field.number_value));
      }
      model.algorithm = static_cast<SentencePieceModel::Algorithm>(field.number_value);
    } else if (field.number == 24) {
      model.treat_whitespace_as_suffix = field.number_value != 0;
    } else if (field.number == 35) {
      model.byte_fallback = field.number_value != 0;
    }
    return {};
  });
}

Result<void> read_normalizer(std::string_view message, SentencePieceModel& model) {
  return each_field(message, [&](const Field& field) -> Result<void> {
    if (field.number == 2 && field.wire == Wire::bytes) {
      model.precompiled_charsmap = field.bytes;
    } else if (field.wire == Wire::varint) {
      if (field.number == 3) model.add_dummy_prefix = field.number_value != 0;
      if (field.number == 4) model.remove_extra_whitespaces = field.number_value != 0;
      if (field.number == 5) model.escape_whitespaces = field.number_value != 0;
    }
    return {};
  });
}

Result<void> read_model(std::string_view bytes, SentencePieceModel& model) {
  return each_field(bytes, [&](const Field& field) -> Result<void> {
    if (field.wire != Wire::bytes) return {};
    if (field.number == 1) {
      auto piece = read_piece(field.bytes);
      if (!piece) {
        return fail(std::move(piece).error().context(fmt::format("piece {}", model.pieces.size())));
      }
      model.pieces.push_back(std::move(*piece));
    } else if (field.number == 2) {
      return read_trainer(field.bytes, model);
    } else if (field.number == 3) {
      return read_normalizer(field.bytes, model);
    }
    return {};
  });
}

Result<void> check_pieces(const SentencePieceModel& model) {
  std::unordered_set<std::string_view> seen;
  std::array<bool, 256> bytes{};
  std::size_t unknown = 0, byte_pieces = 0;
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    const auto& piece = model.pieces[id];
    const auto broken = [id](std::string_view cause) {
      return fail(Errc::malformed, fmt::format("piece {}: {}", id, cause));
    };
    if (piece.text.empty()) return broken("empty text");
    if (find_invalid_utf8(piece.text)) return broken("text that is not UTF-8");
    if (!seen.insert(piece.text).second) return broken(fmt::format("'{}' again", piece.text));
    if (piece.type == TokenType::unknown) ++unknown;
    if (piece.type != TokenType::byte) continue;
    const int value = byte_of_piece(piece.text);
    if (!model.byte_fallback) return broken("a byte piece without byte_fallback");
    if (value < 0) return broken(fmt::format("byte piece '{}'", piece.text));
    bytes.at(static_cast<std::size_t>(value)) = true;
    ++byte_pieces;
  }
  if (unknown != 1) {
    return fail(Errc::malformed, fmt::format("{} unknown pieces, exactly 1 is needed", unknown));
  }
  if (model.byte_fallback && byte_pieces != bytes.size()) {
    return fail(Errc::malformed,
                fmt::format("byte_fallback with {} of 256 byte pieces", byte_pieces));
  }
  return {};
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

} // namespace

int byte_of_piece(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || !piece.ends_with('>')) return -1;
  const int high = hex_digit(piece[3]);
  const int low = hex_digit(piece[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

Result<SentencePieceModel> SentencePieceModel::parse(std::string_view bytes,
                                                     std::string_view what) {
  SentencePieceModel model;
  const auto explain = [what](Error error) {
    return fail(std::move(error)
                    .context(fmt::format("reading the SentencePiece model '{}'", what))
                    .with_hint("download the file again; its digest on the Hub tells whether it is "
                               "whole"));
  };
  if (auto read = read_model(bytes, model); !read) return explain(std::move(read).error());
  if (auto checked = check_pieces(model); !checked) return explain(std::move(checked).error());
  return model;
}

} // namespace modeld::quantize
