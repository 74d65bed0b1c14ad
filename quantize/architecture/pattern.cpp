// SPDX-License-Identifier: Apache-2.0
#include "quantize/architecture/pattern.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace modeld::quantize {

Result<NamePattern> NamePattern::parse(std::string_view text) {
  NamePattern pattern;
  pattern.text_ = text;
  std::string plain;
  const auto flush = [&] {
    if (!plain.empty()) pattern.parts_.push_back({Part::Kind::text, std::move(plain)});
    plain.clear();
  };
  while (!text.empty()) {
    Part::Kind kind = Part::Kind::text;
    std::size_t size = 5;
    if (text.starts_with("{bid}")) kind = Part::Kind::bid;
    if (text.starts_with("{xid}")) kind = Part::Kind::xid;
    if (text.starts_with("*")) {
      kind = Part::Kind::any;
      size = 1;
    }
    if (kind != Part::Kind::text) {
      flush();
      pattern.parts_.push_back({kind, {}});
      text.remove_prefix(size);
      continue;
    }
    if (text[0] == '{' || text[0] == '}') {
      return fail(Errc::malformed,
                  fmt::format("reading name pattern '{}': only {{bid}}, {{xid}} and * are holes",
                              pattern.text_));
    }
    plain += text[0];
    text.remove_prefix(1);
  }
  flush();
  return pattern;
}

bool NamePattern::match_from(std::string_view name, std::size_t part, NameNumbers& numbers) const {
  for (; part < parts_.size(); ++part) {
    const Part& now = parts_[part];
    if (now.kind == Part::Kind::text) {
      if (!name.starts_with(now.text)) return false;
      name.remove_prefix(now.text.size());
    } else if (now.kind == Part::Kind::any) {
      if (part + 1 == parts_.size()) return true;
      for (std::size_t skip = 0; skip <= name.size(); ++skip) {
        if (match_from(name.substr(skip), part + 1, numbers)) return true;
      }
      return false;
    } else {
      std::uint32_t number = 0;
      const auto read = std::from_chars(name.data(), name.data() + name.size(), number);
      if (read.ec != std::errc()) return false;
      (now.kind == Part::Kind::bid ? numbers.bid : numbers.xid) = number;
      name.remove_prefix(static_cast<std::size_t>(read.ptr - name.data()));
    }
  }
  return name.empty();
}

std::optional<NameNumbers> NamePattern::match(std::string_view name) const {
  NameNumbers numbers;
  if (!match_from(name, 0, numbers)) return std::nullopt;
  return numbers;
}

std::string NamePattern::fill(const NameNumbers& numbers) const {
  std::string out;
  for (const Part& part : parts_) {
    if (part.kind == Part::Kind::text) out += part.text;
    if (part.kind == Part::Kind::bid && numbers.bid) out += std::to_string(*numbers.bid);
    if (part.kind == Part::Kind::xid && numbers.xid) out += std::to_string(*numbers.xid);
  }
  return out;
}

bool NamePattern::has_bid() const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [](const Part& part) { return part.kind == Part::Kind::bid; });
}

bool NamePattern::has_xid() const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [](const Part& part) { return part.kind == Part::Kind::xid; });
}

} // namespace modeld::quantize
