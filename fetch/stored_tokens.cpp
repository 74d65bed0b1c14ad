// SPDX-License-Identifier: Apache-2.0
#include "fetch/stored_tokens.hpp"

#include <boost/property_tree/ini_parser.hpp>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <sstream>

namespace modeld::fetch {
namespace {

std::optional<std::int64_t> parse_time(const std::string& text) {
  std::int64_t seconds = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, seconds);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return seconds;
}

Result<void> refuse_expired(const Environment& environment, const StoredToken& stored) {
  if (!stored.expires || *stored.expires > environment.now()) return {};
  return fail(Errc::denied,
              fmt::format("using the token '{}' of '{}': it expired at {:%F %T} UTC", stored.name,
                          stored_tokens_file_of(environment),
                          fmt::gmtime(static_cast<std::time_t>(*stored.expires))),
              "hf auth whoami renews it; modelctl login takes one that stays");
}

} // namespace

std::string stored_tokens_file_of(const Environment& environment) {
  const std::string beside = token_file_of(environment);
  return beside.substr(0, beside.rfind('/') + 1) + "stored_tokens";
}

Result<std::vector<StoredToken>> read_stored_tokens(const Environment& environment) {
  const std::string path = stored_tokens_file_of(environment);
  MODELD_ASSIGN(const auto file, environment.file(path));
  std::vector<StoredToken> found;
  if (!file) return found;
  boost::property_tree::ptree sections;
  try {
    std::istringstream text(file->text);
    boost::property_tree::read_ini(text, sections);
  } catch (const boost::property_tree::ini_parser_error& error) {
    return fail(Errc::malformed,
                fmt::format("reading '{}': line {}: {}", path, error.line(), error.message()));
  }
  for (const auto& [name, section] : sections) {
    const auto text = section.get_optional<std::string>("hf_token");
    if (!text) continue;
    auto token = Token::parse(*text);
    if (!token)
      return fail(std::move(token).error().context(fmt::format("'{}' in '{}'", name, path)));
    if (token->empty()) continue;
    found.push_back(
        {name, *std::move(token), parse_time(section.get<std::string>("expires_at", ""))});
  }
  return found;
}

Result<StoredToken> find_stored_token(const Environment& environment, std::string_view name) {
  MODELD_ASSIGN(const auto all, read_stored_tokens(environment));
  const auto at = std::find_if(all.begin(), all.end(),
                               [&](const StoredToken& one) { return one.name == name; });
  if (at != all.end()) {
    MODELD_TRY(refuse_expired(environment, *at));
    return *at;
  }
  std::string names;
  for (const StoredToken& one : all) {
    names += fmt::format("{}'{}'", names.empty() ? "" : ", ", one.name);
  }
  return fail(Errc::not_found,
              fmt::format("looking for the token '{}': '{}' has {}", name,
                          stored_tokens_file_of(environment), all.empty() ? "none" : names),
              "hf auth list shows them; hf auth login adds one");
}

Result<void> check_expiry(const Environment& environment, const Token& token) {
  const auto all = read_stored_tokens(environment);
  if (!all) return {}; // not this program's file, and the token may well be good
  for (const StoredToken& one : *all) {
    if (one.token.reveal() == token.reveal()) return refuse_expired(environment, one);
  }
  return {};
}

} // namespace modeld::fetch
