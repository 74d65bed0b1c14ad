// SPDX-License-Identifier: Apache-2.0
#include "quantize/encoder/model.hpp"
#include "quantize/encoder/utf8_text.hpp"
#include "quantize/tokenizer/files.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <string>

namespace modeld::quantize {
namespace {

/// Greedy longest match from the left; a word that does not come out even is unknown as a whole.
/// With no continuation allowed it is the model of whole words.
class WordPieceModel final : public EncoderModel {
public:
  WordPieceModel(const ModelIds& ids, std::string unk, std::string prefix, std::size_t longest,
                 bool whole_words)
      : ids_(ids), unk_(std::move(unk)), prefix_(std::move(prefix)), longest_(longest),
        whole_words_(whole_words) {}

  Result<void> encode(std::string_view piece, std::vector<std::uint32_t>& ids) const override {
    if (whole_words_) {
      const auto at = ids_.find(piece);
      if (at == ids_.end()) return add_unknown(ids);
      ids.push_back(at->second);
      return {};
    }
    if (to_utf32(piece).size() > longest_) return add_unknown(ids);
    std::vector<std::uint32_t> parts;
    for (std::size_t begin = 0; begin < piece.size();) {
      std::size_t end = piece.size();
      std::string part;
      auto found = ids_.end();
      for (; end > begin; end = shorter(piece, end)) {
        part = begin > 0 ? prefix_ : std::string();
        part += piece.substr(begin, end - begin);
        found = ids_.find(part);
        if (found != ids_.end()) break;
      }
      if (found == ids_.end()) return add_unknown(ids);
      parts.push_back(found->second);
      begin = end;
    }
    ids.insert(ids.end(), parts.begin(), parts.end());
    return {};
  }

private:
  static std::size_t shorter(std::string_view text, std::size_t end) {
    do {
      --end;
    } while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U);
    return end;
  }

  Result<void> add_unknown(std::vector<std::uint32_t>& ids) const {
    const auto at = ids_.find(unk_);
    if (at == ids_.end()) {
      return fail(
          Errc::malformed,
          fmt::format("reading 'tokenizer.json': the unknown token '{}' is no token", unk_));
    }
    ids.push_back(at->second);
    return {};
  }

  const ModelIds& ids_;
  std::string unk_;
  std::string prefix_;
  std::size_t longest_;
  bool whole_words_;
};

} // namespace

Result<std::unique_ptr<EncoderModel>> make_wordpiece_model(const boost::json::object& model,
                                                           const ModelIds& ids) {
  constexpr std::int64_t k_longest = 100;
  const auto longest = whole_number(model.if_contains("max_input_chars_per_word"));
  return std::make_unique<WordPieceModel>(
      ids, std::string(text_member(model, "unk_token").value_or("[UNK]")),
      std::string(text_member(model, "continuing_subword_prefix").value_or("##")),
      static_cast<std::size_t>(std::max<std::int64_t>(longest.value_or(k_longest), 0)),
      text_member(model, "type") == "WordLevel");
}

} // namespace modeld::quantize
