// SPDX-License-Identifier: Apache-2.0
#include "fetch/hub_answer.hpp"

#include "fetch/retry.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace modeld::fetch {
namespace {

constexpr std::size_t k_max_quote = 200;
constexpr std::string_view k_bad_token = "Invalid credentials in Authorization header";
constexpr std::string_view k_disabled = "Access to this resource is disabled.";

/// The server's own words: header, else the JSON body's "error"; shortened, on one line.
std::string words_of(const Headers& headers, std::string_view body) {
  std::string text(headers.get("X-Error-Message"));
  if (text.empty()) {
    boost::json::error_code ec;
    const auto value = boost::json::parse(body, ec);
    const auto* object = ec ? nullptr : value.if_object();
    const auto* error = object == nullptr ? nullptr : object->if_contains("error");
    if (error != nullptr && error->is_string()) text = error->get_string();
  }
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  if (text.size() > k_max_quote) text = text.substr(0, k_max_quote) + "...";
  return text;
}

Error missing_repo(const Subject& subject) {
  Error error{
      Errc::not_found,
      fmt::format("finding '{}': the Hub has no such repository for you", subject.repo),
      subject.had_token
          ? "check the spelling, and that your token's account may read it if it is private"
          : "check the spelling; a private repository needs a token: modelctl login, or HF_TOKEN",
      {},
      0};
  return std::move(error).with_detail("missing", "repository");
}

Error gated(const Subject& subject) {
  const std::string page = fmt::format("{}/{}", subject.endpoint, subject.repo);
  Error error{
      Errc::denied,
      fmt::format("reading '{}': access is granted by its authors only", subject.repo),
      subject.had_token
          ? fmt::format("ask for access on {} with the account of your token", page)
          : fmt::format("ask for access on {}, then give a token: modelctl login, or HF_TOKEN",
                        page),
      {},
      0};
  return std::move(error).with_detail("reason", "gated").with_detail("page", page);
}

Error denied(std::string message, std::string hint, std::string reason) {
  return Error{
      Errc::denied, std::move(message), std::move(hint), {{"reason", std::move(reason)}}, 0};
}

Error by_status(const Subject& subject, unsigned status, const std::string& words) {
  const std::string said = words.empty() ? "" : fmt::format(" ({})", words);
  if (status == 401 && !subject.had_token) return missing_repo(subject);
  if (status == 401 || status == 403) {
    return denied(
        fmt::format("reading '{}': the Hub refuses, HTTP status {}{}", subject.repo, status, said),
        "check what your token is allowed to do, on the Hub's settings page", "forbidden");
  }
  if (status == 404) {
    Error error{Errc::not_found,
                fmt::format("finding '{}{}{}': HTTP status 404{}", subject.repo,
                            subject.path.empty() ? "" : "/", subject.path, said),
                "",
                {},
                0};
    return std::move(error).with_detail("missing", subject.path.empty() ? "repository" : "file");
  }
  return Error{
      is_retryable_status(status) ? Errc::net_transient : Errc::net_permanent,
      fmt::format("asking the Hub for '{}': HTTP status {}{}", subject.repo, status, said),
      status == 429 ? "the Hub limits requests: wait, or give a token, which raises the limit" : "",
      {},
      0};
}

Error explain(const Subject& subject, unsigned status, const Headers& headers,
              const std::string& words) {
  const std::string_view code = headers.get("X-Error-Code");
  if (code == "RevisionNotFound") {
    Error error{
        Errc::not_found,
        fmt::format("finding '{}': there is no revision '{}'", subject.repo, subject.revision),
        fmt::format("the branches and tags are listed on {}/{}/tree/main", subject.endpoint,
                    subject.repo),
        {},
        0};
    return std::move(error).with_detail("missing", "revision");
  }
  if (code == "EntryNotFound") {
    Error error{
        Errc::not_found,
        fmt::format("finding '{}' in '{}': there is no such file", subject.path, subject.repo),
        "",
        {},
        0};
    return std::move(error).with_detail("missing", "file");
  }
  if (code == "GatedRepo") return gated(subject);
  if (words == k_disabled) {
    return denied(fmt::format("reading '{}': the Hub has disabled it", subject.repo), "",
                  "disabled");
  }
  if (status == 401 && words == k_bad_token) {
    return denied("asking the Hub: it does not accept the token",
                  "it may be expired or mistyped: make a new one on the Hub's settings page, then "
                  "modelctl login, or set HF_TOKEN",
                  "token");
  }
  if (code == "RepoNotFound") return missing_repo(subject);
  return by_status(subject, status, words);
}

} // namespace

Error refusal(const Subject& subject, unsigned status, const Headers& headers,
              std::string_view body) {
  return explain(subject, status, headers, words_of(headers, body))
      .with_detail("http_status", std::to_string(status));
}

} // namespace modeld::fetch
