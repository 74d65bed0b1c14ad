// SPDX-License-Identifier: Apache-2.0
#include "quantize/encoder/encoder.hpp"

#include "quantize/encoder/added.hpp"
#include "quantize/encoder/model.hpp"
#include "quantize/encoder/normalizer.hpp"
#include "quantize/encoder/pretokenizer.hpp"
#include "quantize/tokenizer/files.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

namespace modeld::quantize {
namespace {

using Ids = std::vector<std::uint32_t>;
using boost::json::object;

constexpr unsigned k_max_depth = 32;

tl::unexpected<Error> broken(std::string_view cause) {
  return fail(Errc::malformed, fmt::format("reading 'tokenizer.json': {}", cause));
}

Result<std::uint32_t> id_of(const boost::json::value& value) {
  const auto id = whole_number(&value);
  if (!id || *id < 0 || *id > 0xFFFFFFFF) return broken("a special token's id is no id");
  return static_cast<std::uint32_t>(*id);
}

/// The ids of a template's special token; one may have several.
Result<Ids> template_ids(const object& processor, std::string_view name) {
  const auto* table = processor.if_contains("special_tokens");
  const auto* tokens = table == nullptr ? nullptr : table->if_object();
  const auto* found = tokens == nullptr ? nullptr : tokens->if_contains(name);
  const auto* entry = found == nullptr ? nullptr : found->if_object();
  const auto* ids = entry == nullptr ? nullptr : entry->if_contains("ids");
  if (ids == nullptr || !ids->is_array()) {
    return broken(fmt::format("the template's token '{}' has no ids", name));
  }
  Ids out;
  for (const auto& each : ids->get_array()) {
    MODELD_ASSIGN(const auto id, id_of(each));
    out.push_back(id);
  }
  return out;
}

Result<Ids> apply_template(const object& processor, const Ids& ids) {
  const auto* single = processor.if_contains("single");
  if (single == nullptr || !single->is_array()) return broken("a template without single");
  Ids out;
  for (const auto& each : single->get_array()) {
    const auto* entry = each.if_object();
    const auto* special = entry == nullptr ? nullptr : entry->if_contains("SpecialToken");
    if (special != nullptr && special->is_object()) {
      MODELD_ASSIGN(const auto own,
                    template_ids(processor, text_member(special->get_object(), "id").value_or("")));
      out.insert(out.end(), own.begin(), own.end());
    } else if (entry != nullptr && entry->contains("Sequence")) {
      out.insert(out.end(), ids.begin(), ids.end());
    }
  }
  return out;
}

/// BERT's and RoBERTa's: one token before and one after, as [text, id].
Result<Ids> apply_pair(const object& processor, const Ids& ids) {
  Ids out;
  for (const std::string_view side : {"cls", "sep"}) {
    const auto* pair = processor.if_contains(side);
    const auto* list = pair == nullptr ? nullptr : pair->if_array();
    if (list == nullptr || list->size() != 2)
      return broken(fmt::format("a processor without {}", side));
    MODELD_ASSIGN(const auto id, id_of((*list)[1]));
    if (side == "sep") out.insert(out.end(), ids.begin(), ids.end());
    out.push_back(id);
  }
  return out;
}

Result<Ids> post_process(const boost::json::value& value, Ids ids, unsigned depth) {
  if (value.is_null()) return ids;
  const auto* processor = value.if_object();
  if (processor == nullptr || depth > k_max_depth)
    return broken("a post-processor that is no object");
  const auto type = text_member(*processor, "type").value_or("");
  if (type == "TemplateProcessing") return apply_template(*processor, ids);
  if (type == "BertProcessing" || type == "RobertaProcessing") return apply_pair(*processor, ids);
  if (type == "ByteLevel") return ids; // changes offsets only
  if (type != "Sequence") {
    return fail(
        Errc::unsupported,
        fmt::format("reading 'tokenizer.json': the post-processor '{}' is not known", type));
  }
  const auto* list = processor->if_contains("processors");
  if (list == nullptr || !list->is_array()) return broken("a Sequence without processors");
  for (const auto& each : list->get_array()) {
    MODELD_ASSIGN(ids, post_process(each, std::move(ids), depth + 1));
  }
  return ids;
}

} // namespace

struct Encoder::Parts {
  boost::json::value post_processor;
  std::unique_ptr<Normalizer> normalizer;
  std::unique_ptr<PreTokenizer> pre_tokenizer;
  std::unique_ptr<EncoderModel> model;
  AddedSearch added;

  Result<void> encode_piece(std::string_view text, bool first, Ids& ids) const {
    std::vector<EncoderPiece> pieces;
    if (!text.empty()) pieces.push_back({std::string(text), first});
    if (pre_tokenizer != nullptr) {
      MODELD_ASSIGN(pieces, pre_tokenizer->apply(std::move(pieces)));
    }
    for (const EncoderPiece& piece : pieces) {
      if (!piece.text.empty()) MODELD_TRY(model->encode(piece.text, ids));
    }
    return {};
  }

  /// A stretch of the raw text between added tokens.
  Result<void> encode_stretch(std::string_view raw, bool first, Ids& ids) const {
    std::string text(raw);
    if (normalizer != nullptr) {
      MODELD_ASSIGN(text, normalizer->apply(raw));
    }
    for (const auto& part : added.cut_normalized(text)) {
      if (part.id) {
        ids.push_back(*part.id);
        continue;
      }
      MODELD_TRY(encode_piece(std::string_view(text).substr(part.begin, part.end - part.begin),
                              first && part.begin == 0, ids));
    }
    return {};
  }
};

Encoder::Encoder(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Encoder::Encoder(Encoder&&) noexcept = default;
Encoder& Encoder::operator=(Encoder&&) noexcept = default;
Encoder::~Encoder() = default;

Result<Encoder> Encoder::make(const HfTokenizer& tokenizer) {
  auto parts = std::make_unique<Parts>();
  parts->post_processor = tokenizer.post_processor();
  MODELD_ASSIGN(parts->normalizer, Normalizer::make(tokenizer.normalizer()));
  MODELD_ASSIGN(parts->pre_tokenizer, PreTokenizer::make(tokenizer.pre_tokenizer()));
  MODELD_ASSIGN(parts->model, EncoderModel::make(tokenizer.model(), tokenizer.model_ids()));
  MODELD_ASSIGN(parts->added, AddedSearch::make(tokenizer.added(), parts->normalizer.get()));
  return Encoder(std::move(parts));
}

Result<Ids> Encoder::encode(std::string_view text, Special special) const {
  Ids ids;
  for (const auto& part : parts_->added.cut_raw(text)) {
    if (part.id) {
      ids.push_back(*part.id);
      continue;
    }
    MODELD_TRY(parts_->encode_stretch(text.substr(part.begin, part.end - part.begin),
                                      part.begin == 0, ids));
  }
  if (special == Special::leave_out) return ids;
  return post_process(parts_->post_processor, std::move(ids), 0);
}

} // namespace modeld::quantize
