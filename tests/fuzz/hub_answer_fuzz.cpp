// SPDX-License-Identifier: Apache-2.0
// What a Hub, a mirror or somebody in between may answer: JSON, links, addresses, headers, names.
#include "fuzz.hpp"

#include "fetch/headers.hpp"
#include "fetch/hub_answer.hpp"
#include "fetch/listing.hpp"
#include "fetch/resume.hpp"
#include "fetch/url.hpp"
#include "schema/model_ref.hpp"

using namespace modeld;
using namespace modeld::fetch;
using namespace modeld::fuzz;

namespace {

void listing(std::string_view text) {
  std::vector<ListedFile> files;
  if (!append_tree_page(text, files) || !finish_listing(files)) return;
  for (std::size_t i = 0; i < files.size(); ++i) {
    require(check_repo_path(files[i].path).has_value(), "a path that attacks a file system");
    require(i == 0 || files[i - 1].path < files[i].path, "files out of order, or twice");
  }
}

void addresses(std::string_view text) {
  const auto hub = Url::parse("https://hub.example/a/b?c=d");
  require(hub.has_value(), "an address");
  for (const auto& url : {Url::parse(text), hub->join(text)}) {
    if (!url) continue;
    const auto again = Url::parse(url->text());
    require(again.has_value() && again->origin() == url->origin(), "an address with two origins");
    require(url->text().find_first_of("\r\n \t") == std::string::npos, "a break in an address");
  }
  if (const auto next = next_link(text); next && *next) (void)hub->join(**next);
}

} // namespace

int modeld::fuzz::fuzz_hub_answer(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = text_of(data, size);
  listing(text);
  if (const auto info = parse_repo_info(text))
    require(RepoId::parse(info->repo.text).has_value(), "a repository's name");
  addresses(text);
  if (const auto ref = ModelRef::parse(text)) {
    const auto again = ModelRef::parse(ref->str());
    require(again.has_value() && again->str() == ref->str(), "a ref that changes");
  }
  Headers headers;
  headers.add("Content-Range", std::string(text.substr(0, 100)));
  headers.add("Content-Length", std::string(text.substr(0, 20)));
  headers.add("Retry-After", std::string(text.substr(0, 40)));
  headers.add("X-Error-Code", std::string(text.substr(0, 40)));
  const Wanted wanted{10, 20, 100, true, {}};
  const Verdict verdict = judge(wanted, 206, headers);
  if (verdict.kind == Verdict::Kind::append)
    require(text.find("10-19/100") != std::string_view::npos, "another range than was asked for");
  (void)refusal({"https://hub", "org/name", "main", "a", true}, 401, headers, text);
  return 0;
}
