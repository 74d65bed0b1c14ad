// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fetch/host.hpp"
#include "fetch/part_shelf.hpp"
#include "fetch/token.hpp"
#include "schema/digest.hpp"
#include "schema/model_ref.hpp"
#include "schema/result.hpp"
#include "schema/snapshot.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::fetch {

class Bandwidth;

/// Every limit of the client (design rule 6). Proxies come from the environment, as in curl:
/// HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY, in either case.
struct HubOptions {
  /// Scheme, host, port and path prefix of the Hub; a prefix is kept, a '/' at the end is not.
  std::string endpoint = "https://huggingface.co";
  std::string user_agent; ///< empty: "modeld/<version>"
  std::string ca_bundle;  ///< a PEM file; empty: the system's

  std::chrono::milliseconds connect_timeout{10'000};
  /// A connection slower than this for this long is dropped and replaced.
  std::uint64_t low_speed_bytes_per_second = 1024;
  std::chrono::milliseconds low_speed_time{30'000};
  /// How long the first unfinished range of a file may stand still while those behind it are
  /// through, before it is asked for again on another connection.
  std::chrono::milliseconds head_patience{3'000};
  /// Failures in a row without one new byte before a request is given up.
  unsigned max_attempts = 6;
  /// Waiting of one call, in all, for failures and rate limits.
  std::chrono::milliseconds retry_budget{15 * 60'000};
  /// New signed addresses for one file; they do not count as failures.
  unsigned max_renewals = 1000;
  unsigned max_redirects = 5;

  unsigned max_parallel = 8;                 ///< files at once, and ranges of all files
  unsigned max_ranges = 8;                   ///< ranges of one file at once, as far as they help
  std::uint64_t part_bytes = 4 << 20;        ///< length of such a range
  std::uint64_t max_buffer_bytes = 24 << 20; ///< for ranges ahead of their turn, of one download
  /// How long a complete range waits in memory for its turn before it goes on the file's shelf:
  /// longer than it ever does where the link is fast, so that nothing is written twice there.
  std::chrono::milliseconds shelve_after{1'000};
  std::size_t max_answer_bytes = 64 << 20; ///< of an API answer
  std::size_t max_pages = 10'000;          ///< of a listing
  std::size_t max_files = 1'000'000;       ///< of a repository

  /// Other endpoints to try first, in order, without the token: for resolve and list, and for the
  /// content of files. What they send is proved as the Hub's own.
  std::vector<std::string> api_mirrors;
  std::vector<std::string> data_mirrors;
  /// Bandwidth limits that this client keeps, such as a global one and its own.
  std::vector<std::shared_ptr<Bandwidth>> limits;
  bool offline = false; ///< every call fails (net_permanent) before it touches the network
};

/// A revision, looked up once: every file then comes from this commit, even if the branch moves.
struct Resolved {
  RepoId repo; ///< its name now; differs from the one asked for where it was renamed
  GitOid commit;
  bool is_private = false;
  bool gated = false;
};

/// One file to fetch.
struct Download {
  ListedFile file;
  std::uint64_t offset = 0; ///< bytes that are in the sink already; at most file.size
  Validator validator;      ///< of those bytes, as on_validator told it; may be empty
  /// Gets the bytes from `offset` on, in order, perhaps on a thread of the client's own; owned by
  /// the caller. Nobody writes to it once on_file_done is called or download() has returned.
  ByteSink* sink = nullptr;
  /// Keeps what comes before its turn, and has what an earlier download left, which `validator`
  /// describes too; owned by the caller for as long as the sink. Null: that is lost at the end.
  PartShelf* shelf = nullptr;
};

/// A part of a file, to be read into memory.
struct FilePiece {
  ListedFile file;
  std::uint64_t offset = 0;
  std::uint64_t length = 0; ///< at least 1; offset + length is at most file.size
  std::vector<std::byte> bytes;
};

/// The Hub client: a job makes one and uses it on one thread; connections are kept between calls.
/// The token goes to the endpoint's exact origin (scheme, host, port) and nowhere else.
///
/// Errors: not_found (repository, revision or file; details name which: "missing"), denied (token
/// missing, refused or not approved; the hint names the page to visit), net_transient (budget used
/// up), net_permanent (an answer that no retry makes right), malformed (an answer breaks the
/// protocol), cancelled. Addresses in messages have no query and no user information.
class HubClient {
public:
  /// invalid_argument for an endpoint that is not http or https.
  static Result<HubClient> create(HubOptions options);
  ~HubClient();
  HubClient(HubClient&&) noexcept;
  HubClient& operator=(HubClient&&) noexcept;

  /// The name of the user whose token it is; denied where the Hub does not take it.
  Result<std::string> whoami(const Token& token, Host& host);

  /// A branch, a tag, refs/pr/N, a commit, or a unique beginning of one where the Hub knows it.
  Result<Resolved> resolve(const RepoId& repo, std::string_view revision, const Token& token,
                           Host& host);

  /// Every file of the commit, sorted by path, each once. Reads all pages, or fails.
  Result<std::vector<ListedFile>> list(const RepoId& repo, const GitOid& commit, const Token& token,
                                       Host& host);

  /// Fetches many files at once over one set of connections. Returns when all are done, or with
  /// the first error that retrying did not mend; what the sinks have then stays good to resume.
  Result<void> download(const RepoId& repo, const GitOid& commit,
                        std::span<const Download> downloads, const Token& token,
                        DownloadHost& host);

  /// Reads parts of files by range requests, whole files where a part is one. What comes is of the
  /// right place and length; no digest proves it.
  Result<void> read(const RepoId& repo, const GitOid& commit, std::span<FilePiece> pieces,
                    const Token& token, Host& host);

private:
  struct Impl;
  explicit HubClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

} // namespace modeld::fetch
