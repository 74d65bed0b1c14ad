// SPDX-License-Identifier: Apache-2.0
#include "fetch/hub_client.hpp"

#include "fetch/api.hpp"
#include "fetch/bandwidth.hpp"
#include "fetch/environment.hpp"
#include "fetch/file_fetch.hpp"
#include "fetch/hub_answer.hpp"
#include "fetch/listing.hpp"
#include "fetch/range_reads.hpp"
#include "fetch/request.hpp"
#include "fetch/transfer.hpp"
#include "schema/version.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace modeld::fetch {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds k_step{50};
constexpr std::size_t k_max_empty_pages = 100;
constexpr std::size_t k_write_queue = 8 << 20; // bytes between network and sinks

std::string user_agent(const HubOptions& options) {
  return options.user_agent.empty() ? fmt::format("modeld/{}", k_version) : options.user_agent;
}

/// What other Hub tools read from the environment and curl does not.
WireOptions wire_options(const HubOptions& options) {
  const ProcessEnvironment environment;
  WireOptions wire;
  wire.user_agent = user_agent(options);
  wire.ca_bundle = options.ca_bundle;
  for (const std::string_view name : {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}) {
    if (wire.ca_bundle.empty()) wire.ca_bundle = environment.variable(name).value_or("");
  }
  // curl leaves HTTP_PROXY alone, since a web server sets it for CGI programs by a header of the
  // request. This is none.
  if (!environment.variable("http_proxy")) {
    wire.http_proxy = environment.variable("HTTP_PROXY").value_or("");
  }
  const auto no_proxy = environment.variable("no_proxy");
  wire.no_proxy = no_proxy ? *no_proxy : environment.variable("NO_PROXY").value_or("");
  wire.connect_timeout = options.connect_timeout;
  wire.max_connections = std::max<std::size_t>(64, std::size_t{2} * options.max_parallel);
  return wire;
}

Error offline_error() {
  return Error{Errc::net_permanent,
               "asking the Hub: offline mode is on",
               "unset HF_HUB_OFFLINE, or hub.offline in the configuration, to use the network",
               {},
               0};
}

/// Takes '/' off the end; invalid_argument for what is no endpoint.
Result<Url> check_endpoint(std::string& text, std::string_view what) {
  while (text.ends_with('/')) {
    text.pop_back();
  }
  auto url = Url::parse(text);
  if (!url) return fail(std::move(url).error().context(fmt::format("reading {}", what)));
  if (text.find_first_of("?#") == std::string::npos) return url;
  return fail(Errc::invalid_argument,
              fmt::format("reading {}: a query or a fragment is not allowed", what));
}

} // namespace

struct HubClient::Impl {
  Impl(HubOptions with, Url at)
      : options(std::move(with)), endpoint(std::move(at)), wire(wire_options(options)) {
    for (const auto& limit : options.limits) {
      shares.push_back(std::make_unique<Bandwidth::Share>(limit));
    }
  }

  HubOptions options;
  Url endpoint;
  Wire wire;
  std::vector<std::unique_ptr<Bandwidth::Share>> shares; ///< of options.limits

  Courier courier(const Token& token) const { return {endpoint, token, options.max_redirects}; }
  Result<Url> address(std::string_view path) const {
    return Url::parse(options.endpoint + std::string(path));
  }

  /// How long reading has to wait for the bandwidth limits.
  Clock::duration debt(Clock::time_point now) const {
    auto longest = Clock::duration::zero();
    for (const auto& share : shares) {
      longest = std::max(longest, share->wait(now));
    }
    return longest;
  }
  template <class Ask>
  auto over_mirrors(Host& host, Ask ask) -> decltype(ask(std::string()));
  Result<Resolved> resolve_at(const std::string& at, const RepoId& repo, std::string_view wanted,
                              const Token& token, Host& host);
  Result<std::vector<ListedFile>> list_at(const std::string& at, const RepoId& repo,
                                          const GitOid& commit, const Token& token, Host& host);
  Result<std::vector<Url>> content_sites(const DownloadContext& context,
                                         std::string_view path) const;
  class Queue;
};

HubClient::HubClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HubClient::~HubClient() = default;
HubClient::HubClient(HubClient&&) noexcept = default;
HubClient& HubClient::operator=(HubClient&&) noexcept = default;

Result<HubClient> HubClient::create(HubOptions options) {
  MODELD_ASSIGN(Url endpoint, check_endpoint(options.endpoint, "hub.endpoint"));
  for (std::string& mirror : options.api_mirrors) {
    MODELD_TRY(check_endpoint(mirror, "hub.api_mirrors"));
  }
  for (std::string& mirror : options.data_mirrors) {
    MODELD_TRY(check_endpoint(mirror, "hub.data_mirrors"));
  }
  return HubClient(std::make_unique<Impl>(std::move(options), std::move(endpoint)));
}

/// Asks each endpoint in turn until one answers; the last error where none does. A mirror that does
/// not know something is no proof that it does not exist.
template <class Ask>
auto HubClient::Impl::over_mirrors(Host& host, Ask ask) -> decltype(ask(std::string())) {
  for (const std::string& mirror : options.api_mirrors) {
    auto answer = ask(mirror);
    if (answer || answer.error().code == Errc::cancelled) return answer;
    host.on_notice(
        {Notice::Kind::retry, fmt::format("mirror '{}': {}", mirror, answer.error().message), {}});
  }
  return ask(options.endpoint);
}

Result<std::string> HubClient::whoami(const Token& token, Host& host) {
  if (impl_->options.offline) return fail(offline_error());
  const Courier known = impl_->courier(token);
  MODELD_ASSIGN(const Url url, impl_->address("/api/whoami-v2"));
  MODELD_ASSIGN(const ApiAnswer answer, Api(impl_->wire, impl_->options, known, host).get(url));
  if (answer.status == 401 || answer.status == 403) {
    return fail(Errc::denied,
                fmt::format("asking '{}' whose token it is: it is not taken", url.redacted()),
                fmt::format("make a new token at {}/settings/tokens", impl_->options.endpoint));
  }
  if (answer.status != 200) {
    return fail(Errc::net_permanent, fmt::format("asking '{}' whose token it is: the answer is {}",
                                                 url.redacted(), answer.status));
  }
  return parse_user(answer.body);
}

Result<Resolved> HubClient::resolve(const RepoId& repo, std::string_view revision,
                                    const Token& token, Host& host) {
  if (impl_->options.offline) return fail(offline_error());
  return impl_->over_mirrors(host, [&](const std::string& endpoint) {
    return impl_->resolve_at(endpoint, repo, revision.empty() ? "main" : revision, token, host);
  });
}

Result<Resolved> HubClient::Impl::resolve_at(const std::string& at, const RepoId& repo,
                                             std::string_view wanted, const Token& token,
                                             Host& host) {
  const Courier known = courier(token);
  MODELD_ASSIGN(const Url url, Url::parse(fmt::format("{}/api/models/{}/revision/{}", at, repo.text,
                                                      encode_segment(wanted))));
  MODELD_ASSIGN(const ApiAnswer answer, Api(wire, options, known, host).get(url));
  if (answer.status != 200) {
    const Subject subject{at, repo.text, wanted, {}, known.has_token()};
    return fail(refusal(subject, answer.status, answer.headers, answer.body));
  }
  auto resolved = parse_repo_info(answer.body);
  if (!resolved) {
    return fail(std::move(resolved)
                    .error()
                    .context(fmt::format("resolving '{}'", repo.text))
                    .with_hint(fmt::format("'{}' does not answer as a Hub does", at)));
  }
  if (is_commit(wanted) && resolved->commit.hex() != wanted) {
    return fail(Errc::malformed,
                fmt::format("resolving '{}': asked for commit {}, the Hub answers {}", repo.text,
                            wanted, resolved->commit.hex()));
  }
  if (resolved->repo != repo) {
    host.on_notice(
        {Notice::Kind::moved, fmt::format("'{}' is now '{}'", repo.text, resolved->repo.text), {}});
  }
  return resolved;
}

Result<std::vector<ListedFile>> HubClient::list(const RepoId& repo, const GitOid& commit,
                                                const Token& token, Host& host) {
  if (impl_->options.offline) return fail(offline_error());
  return impl_->over_mirrors(
      host, [&](const std::string& endpoint) -> Result<std::vector<ListedFile>> {
        auto files = impl_->list_at(endpoint, repo, commit, token, host);
        if (!files)
          return fail(std::move(files).error().context(fmt::format("listing '{}'", repo.text)));
        return files;
      });
}

Result<std::vector<ListedFile>> HubClient::Impl::list_at(const std::string& at, const RepoId& repo,
                                                         const GitOid& commit, const Token& token,
                                                         Host& host) {
  const Courier known = courier(token);
  Api api(wire, options, known, host);
  MODELD_ASSIGN(Url url,
                Url::parse(fmt::format("{}/api/models/{}/tree/{}?recursive=true&expand=false", at,
                                       repo.text, commit.hex())));
  std::vector<ListedFile> files;
  std::set<std::string> seen;
  std::set<std::string> first_paths;
  std::size_t empty_pages = 0;
  for (std::size_t page = 1;; ++page) {
    if (page > options.max_pages) {
      return fail(Errc::malformed, fmt::format("more than {} pages", options.max_pages));
    }
    if (!seen.insert(url.text()).second) {
      return fail(Errc::malformed, fmt::format("page {} is a page that was read before", page));
    }
    MODELD_ASSIGN(const ApiAnswer answer, api.get(url));
    if (answer.status != 200) {
      const std::string revision = commit.hex();
      const Subject subject{at, repo.text, revision, {}, known.has_token()};
      return fail(refusal(subject, answer.status, answer.headers, answer.body));
    }
    const std::size_t before = files.size();
    MODELD_ASSIGN(const std::size_t entries, append_tree_page(answer.body, files));
    // Every page has an address of its own, and still it may go on for ever.
    empty_pages = entries == 0 ? empty_pages + 1 : 0;
    if (empty_pages > k_max_empty_pages) {
      return fail(Errc::malformed, fmt::format("{} pages in a row are empty", empty_pages));
    }
    if (files.size() > before && !first_paths.insert(files[before].path).second) {
      return fail(Errc::malformed, fmt::format("page {} begins with '{}', as an earlier one does",
                                               page, files[before].path));
    }
    if (files.size() > options.max_files) {
      return fail(Errc::malformed, fmt::format("more than {} files", options.max_files));
    }
    MODELD_ASSIGN(const auto next, next_link(answer.headers.joined("Link")));
    if (!next) break;
    MODELD_ASSIGN(url, answer.url.join(*next));
    if (url.origin() != answer.url.origin()) {
      return fail(Errc::malformed,
                  fmt::format("the next page is on another host, '{}'", url.redacted()));
    }
  }
  MODELD_TRY(finish_listing(files));
  return files;
}

/// The files of one download: at most max_parallel are in work, the others wait for their turn.
class HubClient::Impl::Queue {
public:
  Queue(Impl& impl, DownloadContext& context, std::span<const Download> downloads)
      : impl_(impl), context_(context), downloads_(downloads) {}

  bool finished() const { return work_.empty() && next_ == downloads_.size(); }
  unsigned running() const {
    unsigned sum = 0;
    for (const auto& file : work_) {
      sum += file->running();
    }
    return sum;
  }

  /// Takes in new files, and drops what is done; the error of one that failed.
  Result<void> refill() {
    for (const auto& file : work_) {
      if (file->state() == FileFetch::State::failed) return fail(file->error());
    }
    std::erase_if(work_, [](const auto& file) { return file->state() == FileFetch::State::done; });
    while (work_.size() < std::max(1u, impl_.options.max_parallel) && next_ < downloads_.size()) {
      const Download& download = downloads_[next_];
      MODELD_ASSIGN(std::vector<Url> sites, impl_.content_sites(context_, download.file.path));
      work_.push_back(std::make_unique<FileFetch>(context_, next_++, download, std::move(sites)));
    }
    return {};
  }

  /// A turn of every file. Slots that no other file needs go to further ranges of large ones.
  void advance(Clock::time_point now) {
    context_.tuner.measure(now, context_.received);
    const unsigned most = std::max(1u, impl_.options.max_parallel);
    const auto files = static_cast<unsigned>(work_.size());
    unsigned spare =
        std::min(most, std::max(files, context_.tuner.level())) - std::min(most, files);
    spare -= std::min(spare, extra_ranges());
    for (const auto& file : work_) {
      spare -= std::min(spare, file->advance(now, spare));
    }
  }
  void excuse(Clock::time_point now) {
    for (const auto& file : work_) {
      file->excuse(now);
    }
  }
  bool waits_for_writer() const {
    return std::any_of(work_.begin(), work_.end(),
                       [](const auto& file) { return file->waits_for_writer(); });
  }
  /// When the first waiting request may go out; max() where none waits.
  Clock::time_point next_start() const {
    auto next = Clock::time_point::max();
    for (const auto& file : work_) {
      next = std::min(next, file->next_start());
    }
    return next;
  }

private:
  /// Running ranges beyond one for each file.
  unsigned extra_ranges() const {
    unsigned sum = 0;
    for (const auto& file : work_) {
      sum += file->running() - std::min(1u, file->running());
    }
    return sum;
  }

  Impl& impl_;
  DownloadContext& context_;
  std::span<const Download> downloads_;
  std::size_t next_ = 0;
  std::vector<std::unique_ptr<FileFetch>> work_;
};

/// Addresses of a file, in the order in which they are tried.
Result<std::vector<Url>> HubClient::Impl::content_sites(const DownloadContext& context,
                                                        std::string_view path) const {
  const std::string rest =
      fmt::format("/{}/resolve/{}/{}", context.repo.text, context.commit.hex(), encode_path(path));
  std::vector<Url> sites;
  for (const std::string& mirror : options.data_mirrors) {
    MODELD_ASSIGN(Url url, Url::parse(mirror + rest));
    sites.push_back(std::move(url));
  }
  MODELD_ASSIGN(Url url, address(rest));
  sites.push_back(std::move(url));
  return sites;
}

Result<void> HubClient::download(const RepoId& repo, const GitOid& commit,
                                 std::span<const Download> downloads, const Token& token,
                                 DownloadHost& host) {
  if (impl_->options.offline) return fail(offline_error());
  for (const Download& download : downloads) {
    MODELD_TRY(check_repo_path(download.file.path));
    if (download.offset <= download.file.size && download.sink != nullptr) continue;
    return fail(Errc::invalid_argument,
                fmt::format("downloading '{}': {} bytes are there already, its size is {}",
                            download.file.path, download.offset, download.file.size));
  }
  const Courier courier = impl_->courier(token);
  SinkWriter writer(k_write_queue, [wire = &impl_->wire] { wire->wake(); });
  DownloadContext context{impl_->wire,
                          impl_->options,
                          impl_->shares,
                          courier,
                          host,
                          writer,
                          repo,
                          commit,
                          RangeTuner(std::max(impl_->options.max_parallel, 1u)),
                          {},
                          0,
                          0};
  Impl::Queue queue(*impl_, context, downloads);
  for (;;) {
    if (host.cancelled()) return fail(cancelled_error());
    MODELD_TRY(queue.refill());
    if (queue.finished()) return {};
    const auto now = host.now();
    queue.advance(now);
    if (const auto debt = impl_->debt(now); debt > Clock::duration::zero()) {
      queue.excuse(now);
      host.sleep(std::min<Clock::duration>(debt, k_step));
    } else if (queue.running() > 0 || queue.waits_for_writer()) {
      impl_->wire.step(k_step); // for the network, or for the writer
    } else if (const auto next = queue.next_start();
               next != Clock::time_point::max() && next > now) {
      host.sleep(std::min<Clock::duration>(next - now, k_step));
    }
  }
}

namespace {

/// A host of downloads for calls that have no files to finish.
class ReadHost final : public DownloadHost {
public:
  explicit ReadHost(Host& host) : host_(host) {}
  bool cancelled() override { return host_.cancelled(); }
  void on_notice(const Notice& notice) override { host_.on_notice(notice); }
  Clock::time_point now() override { return host_.now(); }
  void sleep(Clock::duration time) override { host_.sleep(time); }
  double jitter() override { return host_.jitter(); }
  void on_progress(std::size_t, std::uint64_t) override {}
  Result<void> on_file_done(std::size_t) override { return {}; }
  Result<ByteSink*> on_restart(std::size_t) override {
    return fail(Errc::internal, "reading parts of files: nothing starts again");
  }

private:
  Host& host_;
};

} // namespace

Result<void> HubClient::read(const RepoId& repo, const GitOid& commit, std::span<FilePiece> pieces,
                             const Token& token, Host& host) {
  if (impl_->options.offline) return fail(offline_error());
  const Courier courier = impl_->courier(token);
  ReadHost reading(host);
  SinkWriter writer(k_write_queue, [wire = &impl_->wire] { wire->wake(); });
  DownloadContext context{impl_->wire, impl_->options, impl_->shares, courier, reading, writer,
                          repo,        commit,         RangeTuner(1), {},      0,       0};
  std::vector<std::vector<Url>> sites;
  for (const FilePiece& piece : pieces) {
    MODELD_TRY(check_repo_path(piece.file.path));
    if (piece.length == 0 || piece.offset > piece.file.size ||
        piece.length > piece.file.size - piece.offset) {
      return fail(Errc::invalid_argument,
                  fmt::format("reading '{}': {} bytes at {} are not within its {}", piece.file.path,
                              piece.length, piece.offset, piece.file.size));
    }
    MODELD_ASSIGN(auto addresses, impl_->content_sites(context, piece.file.path));
    sites.push_back(std::move(addresses));
  }
  return read_ranges(context, pieces, sites);
}

} // namespace modeld::fetch
