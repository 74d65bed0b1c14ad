// SPDX-License-Identifier: Apache-2.0
#include "fetch/hub_client.hpp"

#include "fetch/api.hpp"
#include "fetch/file_fetch.hpp"
#include "fetch/hub_answer.hpp"
#include "fetch/listing.hpp"
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

std::string user_agent(const HubOptions& options) {
  return options.user_agent.empty() ? fmt::format("modeld/{}", k_version) : options.user_agent;
}

} // namespace

struct HubClient::Impl {
  Impl(HubOptions with, Url at)
      : options(std::move(with)), endpoint(std::move(at)),
        wire({user_agent(options), options.ca_bundle, options.connect_timeout,
              std::max<std::size_t>(64, std::size_t{2} * options.max_parallel)}) {}

  HubOptions options;
  Url endpoint;
  Wire wire;

  Courier courier(const Token& token) const { return {endpoint, token, options.max_redirects}; }
  Result<Url> address(std::string_view path) const {
    return Url::parse(options.endpoint + std::string(path));
  }
  class Queue;
};

HubClient::HubClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HubClient::~HubClient() = default;
HubClient::HubClient(HubClient&&) noexcept = default;
HubClient& HubClient::operator=(HubClient&&) noexcept = default;

Result<HubClient> HubClient::create(HubOptions options) {
  while (options.endpoint.ends_with('/')) {
    options.endpoint.pop_back();
  }
  auto endpoint = Url::parse(options.endpoint);
  if (!endpoint) return fail(std::move(endpoint).error().context("reading hub.endpoint"));
  if (options.endpoint.find_first_of("?#") != std::string::npos) {
    return fail(Errc::invalid_argument,
                "reading hub.endpoint: a query or a fragment is not allowed");
  }
  return HubClient(std::make_unique<Impl>(std::move(options), std::move(*endpoint)));
}

Result<Resolved> HubClient::resolve(const RepoId& repo, std::string_view revision,
                                    const Token& token, Host& host) {
  const Courier courier = impl_->courier(token);
  const std::string_view wanted = revision.empty() ? std::string_view("main") : revision;
  MODELD_ASSIGN(const Url url, impl_->address(fmt::format("/api/models/{}/revision/{}", repo.text,
                                                          encode_segment(wanted))));
  MODELD_ASSIGN(const ApiAnswer answer, Api(impl_->wire, impl_->options, courier, host).get(url));
  if (answer.status != 200) {
    const Subject subject{impl_->options.endpoint, repo.text, wanted, {}, courier.has_token()};
    return fail(refusal(subject, answer.status, answer.headers, answer.body));
  }
  auto resolved = parse_repo_info(answer.body);
  if (!resolved) {
    return fail(
        std::move(resolved)
            .error()
            .context(fmt::format("resolving '{}'", repo.text))
            .with_hint(fmt::format("'{}' does not answer as a Hub does", impl_->options.endpoint)));
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
  const Courier courier = impl_->courier(token);
  Api api(impl_->wire, impl_->options, courier, host);
  const std::string doing = fmt::format("listing '{}'", repo.text);
  MODELD_ASSIGN(Url url,
                impl_->address(fmt::format("/api/models/{}/tree/{}?recursive=true&expand=false",
                                           repo.text, commit.hex())));
  std::vector<ListedFile> files;
  std::set<std::string> seen;
  for (std::size_t page = 0;; ++page) {
    if (page >= impl_->options.max_pages || !seen.insert(url.text()).second) {
      return fail(Errc::malformed,
                  page >= impl_->options.max_pages
                      ? fmt::format("{}: more than {} pages", doing, page)
                      : fmt::format("{}: page {} links back to an earlier one", doing, page));
    }
    MODELD_ASSIGN(const ApiAnswer answer, api.get(url));
    if (answer.status != 200) {
      const Subject subject{
          impl_->options.endpoint, repo.text, commit.hex(), {}, courier.has_token()};
      return fail(refusal(subject, answer.status, answer.headers, answer.body).context(doing));
    }
    if (auto read = append_tree_page(answer.body, files); !read) {
      return fail(std::move(read).error().context(doing));
    }
    if (files.size() > impl_->options.max_files) {
      return fail(Errc::malformed,
                  fmt::format("{}: more than {} files", doing, impl_->options.max_files));
    }
    const auto next = next_link(answer.headers.get("Link"));
    if (!next) break;
    MODELD_ASSIGN(url, answer.url.join(*next));
    if (url.origin() != answer.url.origin()) {
      return fail(Errc::malformed,
                  fmt::format("{}: the next page is on another host, '{}'", doing, url.redacted()));
    }
  }
  if (auto done = finish_listing(files); !done) return fail(std::move(done).error().context(doing));
  return files;
}

/// The files of one download: some wait for their turn, at most max_parallel are in work.
class HubClient::Impl::Queue {
public:
  Queue(Impl& impl, DownloadContext& context, std::span<const Download> downloads)
      : impl_(impl), context_(context), downloads_(downloads) {}

  bool finished() const { return work_.empty() && next_ == downloads_.size(); }
  std::size_t running() const {
    return static_cast<std::size_t>(std::count_if(work_.begin(), work_.end(), [](const auto& file) {
      return file->state() == FileFetch::State::running;
    }));
  }

  /// Takes in new files, and drops what is done; the error of one that failed.
  Result<void> refill() {
    std::erase_if(work_, [](const auto& file) { return file->state() == FileFetch::State::done; });
    for (const auto& file : work_) {
      if (file->state() == FileFetch::State::failed) return fail(file->error());
    }
    while (work_.size() < std::max(1u, impl_.options.max_parallel) && next_ < downloads_.size()) {
      const Download& download = downloads_[next_];
      MODELD_ASSIGN(Url url, impl_.address(fmt::format("/{}/resolve/{}/{}", context_.repo.text,
                                                       context_.commit.hex(),
                                                       encode_path(download.file.path))));
      work_.push_back(std::make_unique<FileFetch>(context_, next_++, download, std::move(url)));
    }
    return {};
  }

  /// Starts what may start, replaces what went silent; when the next may start, if one waits.
  Clock::time_point advance(Clock::time_point now) {
    auto next_start = Clock::time_point::max();
    for (const auto& file : work_) {
      const auto at = std::max(file->ready_at(), context_.hold_until);
      if (file->state() == FileFetch::State::running) {
        file->check_speed(now);
      } else if (file->state() == FileFetch::State::ready && at <= now) {
        file->start();
      } else if (file->state() == FileFetch::State::ready) {
        next_start = std::min(next_start, at);
      }
    }
    return next_start;
  }

private:
  Impl& impl_;
  DownloadContext& context_;
  std::span<const Download> downloads_;
  std::size_t next_ = 0;
  std::vector<std::unique_ptr<FileFetch>> work_;
};

Result<void> HubClient::download(const RepoId& repo, const GitOid& commit,
                                 std::span<const Download> downloads, const Token& token,
                                 DownloadHost& host) {
  for (const Download& download : downloads) {
    MODELD_TRY(check_repo_path(download.file.path));
    if (download.offset <= download.file.size && download.sink != nullptr) continue;
    return fail(Errc::invalid_argument,
                fmt::format("downloading '{}': {} bytes are there already, its size is {}",
                            download.file.path, download.offset, download.file.size));
  }
  const Courier courier = impl_->courier(token);
  DownloadContext context{impl_->wire, impl_->options, courier, host, repo, commit, {}};
  Impl::Queue queue(*impl_, context, downloads);
  for (;;) {
    if (host.cancelled()) return fail(cancelled_error());
    MODELD_TRY(queue.refill());
    if (queue.finished()) return {};
    const auto now = host.now();
    const auto next_start = queue.advance(now);
    if (queue.running() > 0) {
      impl_->wire.step(k_step);
    } else if (next_start != Clock::time_point::max() && next_start > now) {
      host.sleep(std::min<Clock::duration>(next_start - now, k_step));
    }
  }
}

} // namespace modeld::fetch
