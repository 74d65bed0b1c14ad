// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/gguf/kv_list.hpp"
#include "quantize/tokenizer/files.hpp"
#include "schema/result.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace modeld::quantize {

/// A model's chat template: one text, or several with names.
struct ChatTemplate {
  std::optional<std::string> text;
  std::vector<std::pair<std::string, std::string>> named; ///< only where there is no single text

  bool empty() const { return !text && named.empty(); }
  /// tokenizer.chat_template, or one key for each name, their list (sorted: the reference's order
  /// is that of a hash set) and the one called "default" as the template itself.
  void write(KvList& kv) const;
};

/// tokenizer_config.json first; then chat_template.jinja with additional_chat_templates/*.jinja,
/// then chat_template.json. A template of another type is left out with a warning.
Result<ChatTemplate> load_chat_template(TokenizerFiles& files,
                                        const boost::json::object& tokenizer_config,
                                        std::vector<std::string>& warnings);

} // namespace modeld::quantize
