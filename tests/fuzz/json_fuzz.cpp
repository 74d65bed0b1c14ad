// SPDX-License-Identifier: Apache-2.0
// Our reader of JSON against the library's.
#include "fuzz.hpp"

#include "schema/json.hpp"
#include "validate/escape.hpp"
#include "validate/json_document.hpp"

#include <cmath>

using namespace modeld;
using namespace modeld::fuzz;
using namespace modeld::validate;

namespace {

std::size_t walk(JsonValue value, std::size_t depth) {
  require(depth < 70, "deeper than the limit");
  std::size_t count = 1;
  for (const JsonValue member : value)
    count += walk(member, depth + 1);
  return count;
}

} // namespace

int modeld::fuzz::fuzz_json(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = text_of(data, size);
  const JsonDocument document = JsonDocument::parse(text);
  const bool ours = document.fault().empty();
  if (ours) walk(document.root(), 0);
  require(JsonDocument::parse(text, JsonReader::NonFinite::accept).fault().empty() || !ours,
          "leave for NaN refuses what is good without");
  const std::string shown = escape_text(text, size);
  require(utf8_valid_prefix(shown) == shown.size(), "escaped text that is no UTF-8");
  require(!text_traits(shown).control && !text_traits(shown).bidi, "escaped text with controls");
  // The library is as strict; it refuses numbers out of range that we keep as text.
  if (parse_json(text, "fuzz"))
    require(ours || document.has_byte_order_mark(), "we refuse good JSON");
  return 0;
}
