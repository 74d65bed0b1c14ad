// SPDX-License-Identifier: Apache-2.0
#include "quantize/encoder/model.hpp"
#include "quantize/encoder/utf8_text.hpp"
#include "quantize/tokenizer/files.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <optional>
#include <queue>
#include <string>

namespace modeld::quantize {
namespace {

using boost::json::object;

struct Merge {
  std::uint32_t rank = 0;
  std::uint32_t id = 0;
};

/// Pairs of ids to their merge: open addressing, since a map of 280,000 nodes takes longer to build
/// than the text to encode.
class MergeTable {
public:
  explicit MergeTable(std::size_t count) {
    std::size_t size = 16;
    while (size < count * 2) {
      size *= 2;
    }
    slots_.resize(size);
  }
  /// A later merge of the same pair counts.
  void set(std::uint32_t left, std::uint32_t right, Merge merge) {
    const std::uint64_t key = key_of(left, right);
    auto& slot = slots_[find(key)];
    slot = {key, merge};
  }
  const Merge* get(std::uint32_t left, std::uint32_t right) const {
    const std::uint64_t key = key_of(left, right);
    const auto& slot = slots_[find(key)];
    return slot.key == key ? &slot.merge : nullptr;
  }

private:
  struct Slot {
    std::uint64_t key = k_empty;
    Merge merge;
  };
  static constexpr std::uint64_t k_empty = ~std::uint64_t{0};
  static std::uint64_t key_of(std::uint32_t left, std::uint32_t right) {
    return static_cast<std::uint64_t>(left) << 32U | right;
  }
  std::size_t find(std::uint64_t key) const {
    std::size_t at = static_cast<std::size_t>((key * 0x9E3779B97F4A7C15U) >> 20U);
    const std::size_t mask = slots_.size() - 1;
    while (slots_[at & mask].key != key && slots_[at & mask].key != k_empty) {
      ++at;
    }
    return at & mask;
  }
  std::vector<Slot> slots_;
};

/// The symbols of one piece as a linked list, merged by a queue of candidates.
class Word {
public:
  explicit Word(const MergeTable& merges) : merges_(merges) {}

  void add(std::uint32_t id) {
    const auto at = static_cast<int>(symbols_.size());
    if (at > 0) symbols_.back().next = at;
    symbols_.push_back({id, at - 1, -1, true});
  }

  void merge_all() {
    for (int at = 0; at + 1 < static_cast<int>(symbols_.size()); ++at) {
      push(at);
    }
    while (!queue_.empty()) {
      const Candidate top = queue_.top();
      queue_.pop();
      Symbol& left = symbols_[static_cast<std::size_t>(top.at)];
      if (!left.alive || left.next < 0) continue;
      Symbol& right = symbols_[static_cast<std::size_t>(left.next)];
      const Merge* merge = merges_.get(left.id, right.id);
      if (merge == nullptr || merge->id != top.id) continue; // overtaken by another merge
      left.id = top.id;
      right.alive = false;
      left.next = right.next;
      if (left.next >= 0) symbols_[static_cast<std::size_t>(left.next)].previous = top.at;
      if (left.previous >= 0) push(left.previous);
      push(top.at);
    }
  }

  void append_to(std::vector<std::uint32_t>& ids) const {
    for (const Symbol& symbol : symbols_) {
      if (symbol.alive) ids.push_back(symbol.id);
    }
  }

private:
  struct Symbol {
    std::uint32_t id;
    int previous, next;
    bool alive;
  };
  struct Candidate {
    std::uint32_t rank;
    int at;
    std::uint32_t id;
    bool operator<(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };

  void push(int at) {
    const Symbol& left = symbols_[static_cast<std::size_t>(at)];
    if (left.next < 0) return;
    const Merge* merge = merges_.get(left.id, symbols_[static_cast<std::size_t>(left.next)].id);
    if (merge != nullptr) queue_.push({merge->rank, at, merge->id});
  }

  const MergeTable& merges_;
  std::vector<Symbol> symbols_;
  std::priority_queue<Candidate> queue_;
};

class BpeModel final : public EncoderModel {
public:
  struct Options {
    std::string unk_token, prefix, suffix;
    bool has_unk = false, byte_fallback = false, fuse_unk = false, ignore_merges = false;
  };
  BpeModel(const ModelIds& ids, MergeTable merges, Options options)
      : ids_(ids), merges_(std::move(merges)), options_(std::move(options)) {}

  Result<void> encode(std::string_view piece, std::vector<std::uint32_t>& ids) const override {
    if (options_.ignore_merges) {
      if (const auto whole = id_of(piece)) {
        ids.push_back(*whole);
        return {};
      }
    }
    Word word(merges_);
    bool unknown = false;
    for (std::size_t at = 0; at < piece.size();) {
      const std::size_t before = at;
      next_code_point(piece, at);
      std::string symbol(piece.substr(before, at - before));
      if (before != 0) symbol = options_.prefix + symbol;
      if (at == piece.size()) symbol += options_.suffix;
      if (const auto id = id_of(symbol)) {
        if (unknown) MODELD_TRY(add_unknown(word));
        unknown = false;
        word.add(*id);
        continue;
      }
      // Bytes are added before an unknown that waits: so the library has it.
      if (options_.byte_fallback && add_bytes(symbol, word)) continue;
      if (!options_.has_unk) continue;
      if (unknown && !options_.fuse_unk) MODELD_TRY(add_unknown(word));
      unknown = true;
    }
    if (unknown) MODELD_TRY(add_unknown(word));
    word.merge_all();
    word.append_to(ids);
    return {};
  }

private:
  std::optional<std::uint32_t> id_of(std::string_view token) const {
    const auto at = ids_.find(token);
    return at == ids_.end() ? std::nullopt : std::optional(at->second);
  }

  Result<void> add_unknown(Word& word) const {
    const auto id = id_of(options_.unk_token);
    if (!id) {
      return fail(Errc::malformed,
                  fmt::format("reading 'tokenizer.json': the unknown token '{}' is no token",
                              options_.unk_token));
    }
    word.add(*id);
    return {};
  }

  bool add_bytes(std::string_view symbol, Word& word) const {
    std::vector<std::uint32_t> bytes;
    for (const char c : symbol) {
      const auto id = id_of(fmt::format("<0x{:02X}>", static_cast<unsigned char>(c)));
      if (!id) return false;
      bytes.push_back(*id);
    }
    for (const std::uint32_t id : bytes) {
      word.add(id);
    }
    return true;
  }

  const ModelIds& ids_;
  MergeTable merges_;
  Options options_;
};

/// "a b" or ["a", "b"].
std::optional<std::pair<std::string_view, std::string_view>> pair_of(const boost::json::value& v) {
  if (const auto* text = v.if_string()) {
    const std::string_view both = *text;
    const auto space = both.find(' ');
    if (space == std::string_view::npos) return std::nullopt;
    return std::pair(both.substr(0, space), both.substr(space + 1));
  }
  const auto* list = v.if_array();
  if (list == nullptr || list->size() != 2 || !(*list)[0].is_string() || !(*list)[1].is_string()) {
    return std::nullopt;
  }
  return std::pair(std::string_view((*list)[0].get_string()),
                   std::string_view((*list)[1].get_string()));
}

Result<MergeTable> read_merges(const object& model, const ModelIds& ids, std::size_t prefix) {
  const auto* list = model.if_contains("merges");
  const auto* merges = list == nullptr ? nullptr : list->if_array();
  MergeTable table(merges == nullptr ? 0 : merges->size());
  if (merges == nullptr) return table;
  std::string whole;
  for (std::size_t rank = 0; rank < merges->size(); ++rank) {
    const auto pair = pair_of((*merges)[rank]);
    const auto broken = [rank] {
      return fail(Errc::malformed,
                  fmt::format("reading 'tokenizer.json': merge {} is not of tokens", rank));
    };
    if (!pair || pair->second.size() < prefix) return broken();
    whole = pair->first;
    whole += pair->second.substr(prefix);
    const auto left = ids.find(pair->first);
    const auto right = ids.find(pair->second);
    const auto both = ids.find(whole);
    if (left == ids.end() || right == ids.end() || both == ids.end()) return broken();
    table.set(left->second, right->second, {static_cast<std::uint32_t>(rank), both->second});
  }
  return table;
}

} // namespace

Result<std::unique_ptr<EncoderModel>> make_bpe_model(const object& model, const ModelIds& ids) {
  if (const auto* dropout = member(model, "dropout"); is_truthy(dropout)) {
    return fail(Errc::unsupported, "reading 'tokenizer.json': the model drops merges at random");
  }
  BpeModel::Options options;
  const auto unk = text_member(model, "unk_token");
  options.has_unk = unk.has_value();
  options.unk_token = unk.value_or("");
  options.prefix = text_member(model, "continuing_subword_prefix").value_or("");
  options.suffix = text_member(model, "end_of_word_suffix").value_or("");
  options.byte_fallback = is_truthy(model.if_contains("byte_fallback"));
  options.fuse_unk = is_truthy(model.if_contains("fuse_unk"));
  options.ignore_merges = is_truthy(model.if_contains("ignore_merges"));
  MODELD_ASSIGN(auto merges, read_merges(model, ids, options.prefix.size()));
  return std::make_unique<BpeModel>(ids, std::move(merges), std::move(options));
}

Result<std::unique_ptr<EncoderModel>> EncoderModel::make(const object& model, const ModelIds& ids) {
  const auto type = text_member(model, "type").value_or("");
  if (type == "BPE" || (type.empty() && model.contains("merges")))
    return make_bpe_model(model, ids);
  if (type == "Unigram" || (type.empty() && model.contains("unk_id"))) {
    return make_unigram_model(model, ids);
  }
  if (type == "WordPiece" || type == "WordLevel") return make_wordpiece_model(model, ids);
  return fail(Errc::unsupported,
              fmt::format("reading 'tokenizer.json': the model type '{}' is not known", type));
}

} // namespace modeld::quantize
