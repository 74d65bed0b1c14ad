// SPDX-License-Identifier: Apache-2.0
// Content: resolve, raw and the storage (hub-protocol.md 1.5 and 1.6). Large files go by 302 to
// the storage's origin under a signed address, small ones by a relative 307 to the cache route.
#include "tests/hub/routes.hpp"

#include "validate/sha256.hpp"

#include <fmt/format.h>

#include <charconv>
#include <span>

namespace modeld::test {
namespace {

// A secret of the test Hub only: it makes addresses that cannot be extended by hand.
constexpr std::string_view k_secret = "modeld-test-hub";

std::string signature(std::string_view path, std::int64_t expires) {
  const std::string text = fmt::format("{}\n{}\n{}", k_secret, path, expires);
  return validate::sha256_of(std::as_bytes(std::span(text))).hex().substr(0, 40);
}

std::string in_quotes(std::string_view etag) {
  return fmt::format("\"{}\"", etag);
}

/// "W/" and quotes aside, as conditional requests compare (RFC 9110, 13.1.2).
bool names_etag(std::string_view header, std::string_view etag) {
  return header == "*" ||
         (!header.empty() && header.find(in_quotes(etag)) != std::string_view::npos);
}

void describe(Answer& answer, const std::string& commit, const HubFile& file) {
  answer.set("X-Repo-Commit", commit);
  answer.set("X-Linked-ETag", in_quotes(file.etag()));
  answer.set("X-Linked-Size", std::to_string(file.bytes.size()));
  answer.set("Accept-Ranges", "bytes");
}

Answer no_entry(const std::string& commit) {
  Answer answer = error_answer(404, "EntryNotFound", "Entry not found");
  answer.set("X-Repo-Commit", commit);
  return answer;
}

Answer denied_xml(std::string_view code, std::string_view message, unsigned status) {
  Answer answer;
  answer.status = status;
  answer.set("Content-Type", "application/xml");
  answer.text = fmt::format(
      "<?xml version=\"1.0\"?><Error><Code>{}</Code><Message>{}</Message></Error>", code, message);
  return answer;
}

} // namespace

Answer file_answer(const Request& request, const HubFile& file, const std::string& etag) {
  Answer answer;
  answer.set("Content-Type", "application/octet-stream");
  answer.set("Accept-Ranges", "bytes");
  answer.set("ETag", in_quotes(etag));
  const std::uint64_t size = file.bytes.size();
  if (names_etag(request.header("If-None-Match"), etag)) {
    answer.status = 304;
    return answer;
  }
  answer.owner = file.owner;
  answer.bytes = file.bytes;
  const std::string_view condition = request.header("If-Range");
  if (!condition.empty() && condition != in_quotes(etag)) return answer;
  const auto range = parse_range(request.header("Range"), size);
  if (!range) return answer;
  if (size == 0) { // clients ask for bytes=0-0 of empty files too, and take 416 for a failure
    answer.set("Content-Range", "bytes */0");
    return answer;
  }
  if (!range->satisfiable) {
    answer.status = 416;
    answer.owner = nullptr;
    answer.set("Content-Range", fmt::format("bytes */{}", size));
    return answer;
  }
  answer.status = 206;
  answer.bytes = file.bytes.substr(range->first, range->last - range->first + 1);
  answer.set("Content-Range", fmt::format("bytes {}-{}/{}", range->first, range->last, size));
  return answer;
}

/// Path, expiry and signature of a large file on the storage's origin.
std::string Routes::sign(const HubRepository& repository, const HubFile& file) const {
  const std::string path = fmt::format("/lfs/{}/{}", repository.id, file.sha256->hex());
  const std::int64_t expires = context_.now() + context_.signed_ttl;
  return fmt::format("{}{}?Expires={}&Signature={}&Key-Pair-Id=TEST", context_.data_endpoint, path,
                     expires, signature(path, expires));
}

Answer Routes::resolve(const Request& request, const std::string& id, std::string_view rest) const {
  if (auto to = repositories_->new_name(id)) return moved(request, id, *to);
  const Access access = open(request, id, Need::content);
  if (access.repository == nullptr) return access.refusal;
  const HubRepository& repository = *access.repository;
  const auto split = split_revision(repository, rest);
  if (!split) return error_answer(400, "", "Invalid path");
  const auto& [revision, path] = *split;
  const auto commit = repository.find(revision);
  if (!commit) {
    return error_answer(404, "RevisionNotFound", fmt::format("Invalid rev id: {}", revision));
  }
  const std::string hex = commit->id().hex();
  const HubFile* file = commit->find(path);
  if (file == nullptr) return no_entry(hex);
  Answer answer;
  if (names_etag(request.header("If-None-Match"), file->etag())) {
    answer.status = 304;
    answer.set("ETag", in_quotes(file->etag()));
  } else if (file->sha256) {
    answer.status = 302;
    answer.set("Location", sign(repository, *file));
    answer.text = "Found. Redirecting to the storage";
  } else {
    answer.status = 307;
    answer.set("Location", fmt::format("{}/api/resolve-cache/models/{}/{}/{}?{}=&etag={}",
                                       context_.prefix, repository.id, hex,
                                       percent_encode(path, "/"), percent_encode(request.path()),
                                       percent_encode(in_quotes(file->etag()))));
    answer.set("ETag", in_quotes(file->etag()));
    answer.text = "Temporary Redirect. Redirecting to the cache";
  }
  answer.set("Content-Type", "text/plain; charset=utf-8");
  describe(answer, hex, *file);
  return answer;
}

Answer Routes::resolve_cache(const Request& request, std::string_view rest) const {
  // Repository ids have one or two parts and the commit is always spelled out, so the commit is
  // the first part that looks like one.
  std::size_t slash = rest.find('/');
  while (slash != std::string_view::npos) {
    const std::string id = percent_decode(rest.substr(0, slash)).value_or("");
    const std::string_view after = rest.substr(slash + 1);
    const std::string commit(after.substr(0, after.find('/')));
    if (commit.size() == 40 && after.size() > 41) {
      const Access access = open(request, id, Need::content);
      if (access.repository == nullptr) return access.refusal;
      const auto it = access.repository->commits.find(commit);
      if (it == access.repository->commits.end()) return error_answer(404, "", "Not Found");
      const HubFile* file = it->second->find(percent_decode(after.substr(41)).value_or(""));
      if (file == nullptr) return no_entry(commit);
      Answer answer = file_answer(request, *file, file->etag());
      describe(answer, commit, *file);
      return answer;
    }
    slash = rest.find('/', slash + 1);
  }
  return error_answer(404, "", "Not Found");
}

Answer Routes::raw(const Request& request, const std::string& id, std::string_view rest) const {
  if (auto to = repositories_->new_name(id)) return moved(request, id, *to);
  const Access access = open(request, id, Need::content);
  if (access.repository == nullptr) return access.refusal;
  const auto split = split_revision(*access.repository, rest);
  if (!split) return error_answer(400, "", "Invalid path");
  const auto commit = access.repository->find(split->first);
  if (!commit) return error_answer(404, "RevisionNotFound", "Invalid rev id: " + split->first);
  const HubFile* file = commit->find(split->second);
  if (file == nullptr) return no_entry(commit->id().hex());
  Answer answer;
  answer.set("Content-Type", "text/plain; charset=utf-8");
  answer.set("X-Repo-Commit", commit->id().hex());
  answer.text = file->sha256 ? file->pointer : std::string(file->bytes);
  return answer;
}

/// The storage knows no tokens: who has a signed address reads, until it expires. A second kind
/// of credentials is an error there, as on the real one.
Answer Routes::data(const Request& request) const {
  if (!request.header("Authorization").empty()) {
    return denied_xml("InvalidArgument", "Only one auth mechanism allowed", 400);
  }
  const std::string path(request.path());
  const std::string text = request.query("Expires").value_or("");
  std::int64_t expires = 0;
  std::from_chars(text.data(), text.data() + text.size(), expires);
  if (request.query("Signature") != signature(path, expires)) {
    return denied_xml("SignatureDoesNotMatch", "Signature does not match", 403);
  }
  if (expires < context_.now()) return denied_xml("AccessDenied", "Request has expired", 403);
  constexpr std::string_view k_folder = "/lfs/";
  const auto slash = path.rfind('/');
  const HubRepository* repository =
      repositories_->find(path.substr(k_folder.size(), slash - k_folder.size()));
  const auto digest = Sha256Digest::parse(std::string_view(path).substr(slash + 1));
  if (repository != nullptr && digest) {
    for (const auto& [id, commit] : repository->commits) {
      for (const HubFile& file : commit->files()) {
        if (file.sha256 != *digest) continue;
        // The storage's own tag has nothing to do with the content's digest (pitfall 34).
        return file_answer(request, file, validate::sha256_of(digest->bytes).hex());
      }
    }
  }
  return denied_xml("NoSuchKey", "The specified key does not exist", 404);
}

} // namespace modeld::test
