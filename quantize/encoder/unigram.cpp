// SPDX-License-Identifier: Apache-2.0
#include "quantize/encoder/model.hpp"
#include "quantize/encoder/utf8_text.hpp"
#include "quantize/tokenizer/files.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

namespace modeld::quantize {
namespace {

// How much worse than the worst token an unknown character is.
constexpr double k_unknown_penalty = 10.0;

/// The best-scored of all ways to cut a piece into tokens.
class UnigramModel final : public EncoderModel {
public:
  UnigramModel(const ModelIds& ids, std::vector<double> scores, std::optional<std::uint32_t> unk,
               bool byte_fallback)
      : ids_(ids), scores_(std::move(scores)), unk_(unk), byte_fallback_(byte_fallback) {
    for (const double score : scores_) {
      lowest_ = std::min(lowest_, score);
    }
    for (const auto& [token, id] : ids_) {
      longest_ = std::max(longest_, token.size());
    }
  }

  Result<void> encode(std::string_view piece, std::vector<std::uint32_t>& ids) const override {
    std::vector<Node> best(piece.size() + 1);
    for (std::size_t begin = 0; begin < piece.size();) {
      std::size_t after = begin;
      next_code_point(piece, after);
      if (!extend(piece, begin, after, best)) return missing_unknown();
      begin = after;
    }
    std::vector<std::string_view> parts;
    std::size_t unknown_end = 0;
    for (std::size_t end = piece.size(); end > 0; end = best[end].begin) {
      const Node& node = best[end];
      const bool unknown = unk_ && node.id == *unk_;
      // Unknown neighbours become one.
      if (unknown && unknown_end == 0) unknown_end = end;
      if (!unknown && unknown_end != 0) {
        parts.push_back(piece.substr(end, unknown_end - end));
        unknown_end = 0;
      }
      if (!unknown) parts.push_back(piece.substr(node.begin, end - node.begin));
    }
    if (unknown_end != 0) parts.push_back(piece.substr(0, unknown_end));
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      MODELD_TRY(add(*part, ids));
    }
    return {};
  }

private:
  struct Node {
    double score = 0;
    std::size_t begin = 0;
    std::uint32_t id = 0;
    bool reached = false;
  };

  static void offer(Node& node, double score, std::size_t begin, std::uint32_t id) {
    if (node.reached && score <= node.score) return;
    node = {score, begin, id, true};
  }

  /// All tokens that start at `begin`; false where there is none and no unknown token.
  bool extend(std::string_view piece, std::size_t begin, std::size_t after,
              std::vector<Node>& best) const {
    const double here = best[begin].score;
    bool single = false;
    const std::size_t last = std::min(piece.size(), begin + longest_);
    for (std::size_t end = after; end <= last;) {
      const auto at = ids_.find(piece.substr(begin, end - begin));
      if (at != ids_.end()) {
        offer(best[end], scores_[at->second] + here, begin, at->second);
        single = single || end == after;
      }
      if (end == piece.size()) break;
      next_code_point(piece, end);
    }
    if (single) return true;
    if (!unk_) return false;
    offer(best[after], lowest_ - k_unknown_penalty + here, begin, *unk_);
    return true;
  }

  Result<void> add(std::string_view part, std::vector<std::uint32_t>& ids) const {
    if (const auto at = ids_.find(part); at != ids_.end()) {
      ids.push_back(at->second);
      return {};
    }
    std::vector<std::uint32_t> bytes;
    for (const char c : byte_fallback_ ? part : std::string_view()) {
      const std::string token = fmt::format("<0x{:02X}>", static_cast<unsigned char>(c));
      const auto at = ids_.find(token);
      if (at != ids_.end()) bytes.push_back(at->second);
    }
    if (byte_fallback_ && bytes.size() == part.size()) {
      ids.insert(ids.end(), bytes.begin(), bytes.end());
      return {};
    }
    if (!unk_) return missing_unknown();
    ids.push_back(*unk_);
    return {};
  }

  static tl::unexpected<Error> missing_unknown() {
    return fail(Errc::malformed, "reading 'tokenizer.json': text without a token and no unk_id");
  }

  const ModelIds& ids_;
  std::vector<double> scores_;
  std::optional<std::uint32_t> unk_;
  bool byte_fallback_;
  double lowest_ = std::numeric_limits<double>::infinity();
  std::size_t longest_ = 0;
};

} // namespace

Result<std::unique_ptr<EncoderModel>> make_unigram_model(const boost::json::object& model,
                                                         const ModelIds& ids) {
  const auto* vocab = model.if_contains("vocab");
  if (vocab == nullptr || !vocab->is_array()) {
    return fail(Errc::malformed,
                "reading 'tokenizer.json': the vocab of a unigram model is no list");
  }
  std::vector<double> scores;
  for (const auto& each : vocab->get_array()) {
    scores.push_back(each.get_array().at(1).to_number<double>());
  }
  const auto unk = whole_number(member(model, "unk_id"));
  if (unk && (*unk < 0 || static_cast<std::size_t>(*unk) >= scores.size())) {
    return fail(Errc::malformed, fmt::format("reading 'tokenizer.json': unk_id {} of {} tokens",
                                             *unk, scores.size()));
  }
  return std::make_unique<UnigramModel>(
      ids, std::move(scores), unk ? std::optional(static_cast<std::uint32_t>(*unk)) : std::nullopt,
      is_truthy(model.if_contains("byte_fallback")));
}

} // namespace modeld::quantize
