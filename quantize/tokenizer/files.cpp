// SPDX-License-Identifier: Apache-2.0
#include "quantize/tokenizer/files.hpp"

#include "quantize/encoder/utf8_text.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace modeld::quantize {
namespace {

// Deeper than any tokenizer file in use; the parser recurses in our own consumers only.
constexpr std::size_t k_max_depth = 64;

boost::json::value parse_once(std::string_view text, boost::json::error_code& ec) {
  boost::json::parse_options options;
  options.max_depth = k_max_depth;
  // A vocabulary is a hundred thousand short strings: one arena instead of as many allocations.
  auto storage = boost::json::make_shared_resource<boost::json::monotonic_resource>(
      std::max<std::size_t>(text.size() * 3, 4096));
  return boost::json::parse(text, ec, storage, options);
}

/// Infinity and NaN outside of strings become null: the reference's parser knows them, JSON does
/// not.
std::string without_python_words(std::string_view text) {
  std::string out;
  bool quoted = false;
  while (!text.empty()) {
    std::size_t n = 1;
    if (quoted && text.front() == '\\' && text.size() > 1) n = 2;
    if (text.front() == '"') quoted = !quoted;
    const auto word = [&](std::string_view w) {
      return !quoted && text.starts_with(w) ? w.size() : 0;
    };
    const std::size_t skip = std::max({word("-Infinity"), word("Infinity"), word("NaN")});
    out += skip > 0 ? std::string_view("null") : text.substr(0, n);
    text.remove_prefix(skip > 0 ? skip : n);
  }
  return out;
}

Result<boost::json::value> parse(std::string_view text, std::string_view path) {
  boost::json::error_code ec;
  auto value = parse_once(text, ec);
  if (!ec) return value;
  boost::json::error_code again;
  if (text.find("Infinity") != std::string_view::npos ||
      text.find("NaN") != std::string_view::npos) {
    value = parse_once(without_python_words(text), again);
    if (!again) return value;
  }
  return fail(Errc::malformed, fmt::format("parsing '{}': {}", path, ec.message()));
}

} // namespace

Result<std::string_view> TokenizerFiles::raw(std::string_view path) const {
  MODELD_ASSIGN(const auto bytes, files_.bytes(path));
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes of a text file
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Result<const boost::json::object*> TokenizerFiles::object(std::string_view path) {
  if (!has(path)) return nullptr;
  auto at = parsed_.find(path);
  if (at == parsed_.end()) {
    MODELD_ASSIGN(const auto bytes, raw(path));
    MODELD_ASSIGN(auto value, parse(bytes, path));
    if (!value.is_object()) {
      return fail(Errc::malformed, fmt::format("parsing '{}': the root is not an object", path));
    }
    at = parsed_.emplace(std::string(path), std::move(value)).first;
  }
  return &at->second->get_object();
}

Result<std::string> TokenizerFiles::text(std::string_view path) const {
  MODELD_ASSIGN(const auto bytes, raw(path));
  if (const auto bad = find_invalid_utf8(bytes)) {
    return fail(Errc::malformed, fmt::format("reading '{}': byte {} is not UTF-8", path, *bad));
  }
  return with_unix_line_ends(bytes);
}

const boost::json::value* member(const boost::json::object& object, std::string_view name) {
  const auto* value = object.if_contains(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::optional<std::string_view> text_member(const boost::json::object& object,
                                            std::string_view name) {
  const auto* value = object.if_contains(name);
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return std::string_view(value->get_string());
}

bool is_truthy(const boost::json::value* value) {
  if (value == nullptr) return false;
  switch (value->kind()) {
  case boost::json::kind::null:
    return false;
  case boost::json::kind::bool_:
    return value->get_bool();
  case boost::json::kind::int64:
    return value->get_int64() != 0;
  case boost::json::kind::uint64:
    return value->get_uint64() != 0;
  case boost::json::kind::double_:
    return value->get_double() != 0;
  case boost::json::kind::string:
    return !value->get_string().empty();
  case boost::json::kind::array:
    return !value->get_array().empty();
  case boost::json::kind::object:
    return !value->get_object().empty();
  }
  return false;
}

std::optional<std::int64_t> whole_number(const boost::json::value* value) {
  if (value == nullptr) return std::nullopt;
  if (value->is_bool()) return value->get_bool() ? 1 : 0;
  if (value->is_int64()) return value->get_int64();
  if (value->is_uint64()) {
    // What does not fit is beyond every vocabulary; the callers compare with a size.
    constexpr auto k_largest = std::numeric_limits<std::int64_t>::max();
    return static_cast<std::int64_t>(
        std::min<std::uint64_t>(value->get_uint64(), static_cast<std::uint64_t>(k_largest)));
  }
  return std::nullopt;
}

} // namespace modeld::quantize
