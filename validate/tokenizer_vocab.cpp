// SPDX-License-Identifier: Apache-2.0
#include "validate/tokenizer_vocab.hpp"

#include "validate/escape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>

namespace modeld::validate {
namespace {

constexpr std::uint64_t k_max_id = (std::uint64_t{1} << 31) - 1;

} // namespace

bool TokenizerVocab::add(std::string_view text, std::uint64_t id) {
  const auto name_at = [&](std::uint32_t i) { return tokens_[i].text; };
  if (index_.insert(text, static_cast<std::uint32_t>(tokens_.size()), name_at)) return false;
  tokens_.push_back({text, id});
  max_id_ = std::max(max_id_, id);
  return true;
}

std::optional<std::uint64_t> TokenizerVocab::id_of(std::string_view token) const {
  const auto at = index_.find(token, [&](std::uint32_t i) { return tokens_[i].text; });
  return at ? std::optional(tokens_[*at].id) : std::nullopt;
}

void TokenizerVocab::read(std::string_view text, Report& report) {
  document_ = JsonDocument::parse(text, JsonReader::NonFinite::accept);
  if (!document_.fault().empty()) {
    report.error("TK-01", document_.fault_offset(),
                 fmt::format("the file is no JSON: {}", document_.fault()));
    return;
  }
  for (const JsonDocument::Duplicate& twice : document_.duplicates())
    report.error("TK-01", twice.offset, fmt::format("member {} stands twice", quoted(twice.name)));
  const JsonValue model = document_.root()["model"];
  const auto type = model["type"].as_string();
  constexpr auto k_types =
      std::to_array<std::string_view>({"BPE", "Unigram", "WordPiece", "WordLevel"});
  if (!model.is_object()) {
    report.error("TK-01", document_.root().offset(), "the file has no object 'model'");
    return;
  }
  // Old files leave the type to be guessed from the members.
  if (type && std::find(k_types.begin(), k_types.end(), *type) == k_types.end()) {
    report.error("TK-01", model["type"].offset(),
                 fmt::format("model.type is {}, known are BPE, Unigram, WordPiece, WordLevel",
                             quoted(*type)));
    return;
  }
  read_vocab(model, report);
  check_merges(model["merges"], report);
  read_added(document_.root()["added_tokens"], report);
}

void TokenizerVocab::read_vocab(JsonValue model, Report& report) {
  const JsonValue vocab = model["vocab"];
  if (!vocab.is_object() && !vocab.is_array()) {
    report.error("TK-01", model.offset(), "model.vocab must be an object or an array");
    return;
  }
  tokens_.reserve(vocab.size());
  index_.reserve(vocab.size());
  if (vocab.is_array()) { // [piece, score], ids by position
    std::uint64_t id = 0;
    for (const JsonValue piece : vocab) {
      const auto text =
          piece.is_array() && piece.size() == 2 ? (*piece.begin()).as_string() : std::nullopt;
      if (!text) {
        report.error("TK-01", piece.offset(),
                     fmt::format("piece {} of model.vocab is no pair of text and score", id));
        return;
      }
      add(*text, id++);
    }
    return;
  }
  std::vector<bool> taken;
  for (const JsonValue token : vocab) {
    const auto id = token.as_u64();
    if (!id || *id > k_max_id) {
      report.error("TK-01", token.offset(),
                   fmt::format("token {} has the id {}, allowed are 0 to 2^31-1",
                               quoted(token.name()), quoted(token.text())));
      return;
    }
    // Ids are dense in every real file; a bitmap of a hostile one must not be large.
    if (*id < 16 * vocab.size() + 1024) {
      if (*id >= taken.size()) taken.resize(static_cast<std::size_t>(*id) + 1);
      if (taken[static_cast<std::size_t>(*id)] && !report.full())
        report.error("TK-01", token.offset(),
                     fmt::format("token {} has the id {}, which another token has",
                                 quoted(token.name()), *id));
      taken[static_cast<std::size_t>(*id)] = true;
    }
    add(token.name(), *id);
  }
}

void TokenizerVocab::read_added(JsonValue added, Report& report) {
  std::unordered_map<std::uint64_t, std::string_view> by_id;
  std::unordered_map<std::uint64_t, std::string_view> base;
  for (const JsonValue token : added) {
    if (const auto id = token["id"].as_u64()) base.emplace(*id, std::string_view());
  }
  for (const Token& token : tokens_)
    if (const auto at = base.find(token.id); at != base.end()) at->second = token.text;
  for (const JsonValue token : added) {
    const auto id = token["id"].as_u64();
    const auto content = token["content"].as_string();
    if (!id || *id > k_max_id || !content) {
      report.error("TK-01", token.offset(), "an added token has no whole id or no content");
      continue;
    }
    const auto [same, first] = by_id.emplace(*id, *content);
    if (!first && same->second != *content) {
      report.error("TK-05", token.offset(),
                   fmt::format("added tokens {} and {} have the same id {}", quoted(same->second),
                               quoted(*content), *id));
    }
    const std::string_view other = base[*id];
    if (first && other.data() != nullptr && other != *content && !report.full())
      report.warn("TK-05", token.offset(),
                  fmt::format("added token {} has the id {} of the token {}", quoted(*content), *id,
                              quoted(other)));
    const auto before = id_of(*content);
    if (before && *before != *id && !report.full())
      report.warn(
          "TK-05", token.offset(),
          fmt::format("added token {} has the ids {} and {}", quoted(*content), *before, *id));
    add(*content, *id);
    max_id_ = std::max(max_id_, *id);
  }
}

void TokenizerVocab::check_merges(JsonValue merges, Report& report) const {
  std::uint64_t bad = 0;
  std::uint64_t total = 0;
  std::string first;
  std::string whole;
  for (const JsonValue merge : merges) {
    ++total;
    std::string_view left;
    std::string_view right;
    if (const auto text = merge.as_string()) {
      const std::size_t space = text->find(' ');
      left = text->substr(0, space);
      if (space != std::string_view::npos) right = text->substr(space + 1);
    } else if (merge.is_array() && merge.size() == 2) {
      auto part = merge.begin();
      left = (*part).as_string().value_or("");
      right = (*++part).as_string().value_or("");
    }
    whole.assign(left);
    whole += right;
    if (id_of(left) && id_of(right) && id_of(whole)) continue;
    if (bad++ == 0) first = std::string(left) + " " + std::string(right);
  }
  if (bad == 0) return;
  report.add(
      "TK-08", bad * 2 > total ? Severity::error : Severity::warning, merges.offset(),
      fmt::format("{} of {} merges have a part or a result that is no token, the first is {}", bad,
                  total, quoted(first)));
}

} // namespace modeld::validate
