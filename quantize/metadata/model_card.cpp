// SPDX-License-Identifier: Apache-2.0
#include "quantize/metadata/model_card.hpp"

#include "quantize/encoder/utf8_text.hpp"
#include "quantize/metadata/yaml_scalar.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <optional>
#include <sstream>

// The front matter starts on the first line with exactly "---" and runs to the next such line, or
// to the end of the file.

namespace modeld::quantize {
namespace {

// Limits on what a stranger's card may ask of us. The largest card on the Hub is far below.
constexpr std::size_t k_max_front_matter = 1U << 20U;
constexpr unsigned k_max_depth = 64;
constexpr std::size_t k_max_nodes = 100000;

constexpr std::string_view k_card = "README.md";
constexpr std::string_view k_hint =
    "correct the YAML at the top of README.md, or go on without the card";

tl::unexpected<Error> card_error(std::string cause) {
  return fail(Errc::malformed, fmt::format("reading the model card '{}': {}", k_card, cause),
              std::string(k_hint));
}

/// Takes no notice: for counting documents.
class Ignore final : public YAML::EventHandler {
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

/// 0, 1, or 2 for more. YAML::LoadAll would not do: on a text that begins with ',' it makes empty
/// documents without end.
int count_documents(const std::string& yaml) {
  std::istringstream stream(yaml);
  YAML::Parser parser(stream);
  Ignore ignore;
  int count = 0;
  while (count < 2 && parser.HandleNextDocument(ignore)) {
    ++count;
  }
  return count;
}

/// yaml-cpp's nodes as JSON values with YAML 1.1's types.
class Converter {
public:
  Result<boost::json::value> convert(const YAML::Node& node, unsigned depth = 0) {
    // Aliases may make a small text a large tree, or one without end.
    if (depth > k_max_depth || ++nodes_ > k_max_nodes) {
      return card_error("nested too deeply, or an alias that contains itself");
    }
    switch (node.Type()) {
    case YAML::NodeType::Scalar:
      return scalar(node);
    case YAML::NodeType::Sequence:
      return sequence(node, depth);
    case YAML::NodeType::Map:
      return mapping(node, depth);
    default:
      return nullptr;
    }
  }

private:
  static std::string place(const YAML::Node& node) {
    return fmt::format("line {} of the front matter", node.Mark().line + 1);
  }

  static Result<boost::json::value> scalar(const YAML::Node& node) {
    constexpr std::string_view k_core = "tag:yaml.org,2002:";
    const std::string& tag = node.Tag();
    const std::string& text = node.Scalar();
    if (tag == "!" || tag == "tag:yaml.org,2002:str") return boost::json::string(text);
    if (tag.empty() || tag == "?") {
      if (text == "=") return card_error(fmt::format("a lone '=' at {}", place(node)));
      return resolve_plain_scalar(text);
    }
    if (tag == fmt::format("{}int", k_core) || tag == fmt::format("{}float", k_core) ||
        tag == fmt::format("{}bool", k_core) || tag == fmt::format("{}null", k_core)) {
      return resolve_plain_scalar(text);
    }
    return card_error(fmt::format("unknown tag '{}' at {}", tag, place(node)));
  }

  Result<boost::json::value> sequence(const YAML::Node& node, unsigned depth) {
    boost::json::array out;
    for (const auto& item : node) {
      MODELD_ASSIGN(auto value, convert(item, depth + 1));
      out.push_back(std::move(value));
    }
    return out;
  }

  Result<boost::json::value> mapping(const YAML::Node& node, unsigned depth) {
    boost::json::object merged, own;
    for (const auto& entry : node) {
      if (!entry.first.IsScalar() && !entry.first.IsNull()) {
        return card_error(fmt::format("a key that is not a scalar at {}", place(entry.first)));
      }
      const bool plain = entry.first.IsScalar() && entry.first.Tag() != "!";
      MODELD_ASSIGN(auto value, convert(entry.second, depth + 1));
      if (plain && entry.first.Scalar() == "<<") {
        MODELD_TRY(merge(merged, value, entry.second));
        continue;
      }
      // Keys that are not text (numbers, false for `no`) are never asked for.
      MODELD_ASSIGN(const auto key, convert(entry.first, depth + 1));
      if (key.is_string()) own[key.get_string()] = std::move(value);
    }
    for (auto& [key, value] : own) {
      merged[key] = std::move(value);
    }
    return merged;
  }

  static Result<void> merge(boost::json::object& into, const boost::json::value& from,
                            const YAML::Node& node) {
    if (const auto* one = from.if_object()) {
      for (const auto& [key, value] : *one) {
        into.insert_or_assign(key, value);
      }
      return {};
    }
    const auto* many = from.if_array();
    if (many == nullptr) {
      return card_error(fmt::format("'<<' without a mapping at {}", place(node)));
    }
    // The first of a list wins.
    for (auto each = many->rbegin(); each != many->rend(); ++each) {
      if (!each->is_object()) {
        return card_error(fmt::format("'<<' without a mapping at {}", place(node)));
      }
      MODELD_TRY(merge(into, *each, node));
    }
    return {};
  }

  std::size_t nodes_ = 0;
};

bool is_printable(char32_t c) {
  return c == 0x09 || c == 0x0A || c == 0x0D || (c >= 0x20 && c <= 0x7E) || c == 0x85 ||
         (c >= 0xA0 && c <= 0xD7FF) || (c >= 0xE000 && c <= 0xFFFD) || c >= 0x10000;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

/// Nothing where the card has no front matter.
std::optional<std::string> front_matter(std::string_view card) {
  const auto lines = split_lines(with_unix_line_ends(card));
  if (lines.empty() || lines.front() != "---") return std::nullopt;
  std::string yaml;
  for (std::size_t i = 1; i < lines.size() && lines[i] != "---"; ++i) {
    yaml += lines[i];
    yaml += '\n';
  }
  if (yaml.empty()) yaml = "\n";
  return yaml;
}

} // namespace

Result<boost::json::object> parse_front_matter(std::string_view text) {
  std::string yaml(text);
  // What the reference does to save two common slips: Norwegian in a list, and tabs.
  replace_all(yaml, "- no\n", "- \"no\"\n");
  replace_all(yaml, "\t", "  ");
  for (std::size_t at = 0; at < yaml.size();) {
    const std::size_t before = at;
    if (const char32_t c = next_code_point(yaml, at); !is_printable(c)) {
      return card_error(fmt::format("control character U+{:04X} at byte {} of the front matter",
                                    static_cast<unsigned>(c), before));
    }
  }
  try {
    const int documents = count_documents(yaml);
    if (documents > 1) return card_error("the front matter holds more than one YAML document");
    if (documents == 0) return boost::json::object{};
    MODELD_ASSIGN(auto value, Converter().convert(YAML::Load(yaml)));
    if (!value.is_object()) return boost::json::object{};
    return std::move(value.get_object());
  } catch (const YAML::Exception& problem) {
    return card_error(fmt::format("{} at line {}, column {} of the front matter", problem.msg,
                                  problem.mark.line + 1, problem.mark.column + 1));
  }
}

Result<boost::json::object> read_model_card(const FileSet& files) {
  if (!files.contains(k_card)) return boost::json::object{};
  MODELD_ASSIGN(const auto bytes, files.bytes(k_card));
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes of a text file
  const std::string_view card(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (const auto bad = find_invalid_utf8(card)) {
    return card_error(fmt::format("byte {} is not UTF-8", *bad));
  }
  const auto yaml = front_matter(card);
  if (!yaml) return boost::json::object{};
  if (yaml->size() > k_max_front_matter) {
    return card_error(fmt::format("front matter of {} bytes, at most {} are read", yaml->size(),
                                  k_max_front_matter));
  }
  return parse_front_matter(*yaml);
}

} // namespace modeld::quantize
