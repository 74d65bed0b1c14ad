// SPDX-License-Identifier: Apache-2.0
#include "daemon/remote_check.hpp"

#include "daemon/job_host.hpp"
#include "daemon/memory_file.hpp"
#include "daemon/pull_work.hpp"
#include "daemon/worker_process.hpp"
#include "fetch/hub_client.hpp"
#include "schema/json.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace modeld::daemon {
namespace {

namespace json = boost::json;
using fetch::FilePiece;

constexpr std::uint64_t k_largest_text = 64ULL << 20;    // of a file that is read whole
constexpr std::uint64_t k_first_header = 256ULL << 10;   // of weights, in the first request
constexpr std::uint64_t k_largest_header = 600ULL << 20; // the readers refuse longer ones
constexpr std::uint64_t k_header_growth = 8;             // from one request to the next
constexpr std::uint64_t k_pickle_beginning = 4ULL << 10; // tells what it is

enum class Part { none, whole, header, beginning };

bool ends_with_any(std::string_view path, std::span<const std::string_view> ends) {
  return std::any_of(ends.begin(), ends.end(),
                     [path](std::string_view end) { return path.ends_with(end); });
}

Part wanted_part(const ListedFile& file) {
  constexpr std::array<std::string_view, 2> k_weights{".safetensors", ".gguf"};
  constexpr std::array<std::string_view, 9> k_texts{".json",  ".model", ".txt",  ".jinja",   ".md",
                                                    ".vocab", ".py",    ".yaml", ".tiktoken"};
  constexpr std::array<std::string_view, 5> k_pickles{".bin", ".pt", ".pth", ".ckpt", ".pkl"};
  if (file.size == 0) return Part::none;
  if (ends_with_any(file.path, k_weights)) return Part::header;
  if (ends_with_any(file.path, k_pickles)) return Part::beginning;
  const bool text = ends_with_any(file.path, k_texts) && file.size <= k_largest_text;
  return text ? Part::whole : Part::none;
}

// A file of the repository, as far as it is here.
struct Known {
  ListedFile file;
  Part part = Part::none;
  MemoryFile bytes;
};

class Look {
public:
  Look(Services& services, Job& job, RemoteCheck asked, fetch::HubClient client, fetch::Token token)
      : services_(services), job_(job), asked_(std::move(asked)), client_(std::move(client)),
        token_(std::move(token)), host_(job) {}

  Result<json::object> run() {
    job_.begin_phase("resolving");
    MODELD_ASSIGN(resolved_,
                  client_.resolve(asked_.ref.repo, asked_.ref.revision_or_main(), token_, host_));
    job_.begin_phase("listing");
    MODELD_ASSIGN(const auto files, client_.list(resolved_.repo, resolved_.commit, token_, host_));
    job_.begin_phase("reading");
    MODELD_TRY(read_first(files));
    MODELD_TRY(read_headers());
    for (Known& one : known_) {
      MODELD_TRY(one.bytes.extend(one.file.size));
    }
    job_.begin_phase("checking");
    MODELD_ASSIGN(json::object report, report_of_worker());
    std::uint64_t bytes = 0;
    for (const ListedFile& file : files) {
      bytes += file.size;
    }
    report["repo"] = resolved_.repo.text;
    report["commit"] = resolved_.commit.hex();
    report["bytes"] = bytes;
    report["bytes_read"] = read_;
    return report;
  }

private:
  Result<void> read(std::span<Known* const> files, std::span<FilePiece> pieces) {
    MODELD_TRY(client_.read(resolved_.repo, resolved_.commit, pieces, token_, host_));
    for (std::size_t i = 0; i < files.size(); ++i) {
      MODELD_TRY(files[i]->bytes.append(pieces[i].bytes));
      read_ += pieces[i].length;
    }
    return {};
  }

  Result<void> read_first(const std::vector<ListedFile>& files) {
    for (const ListedFile& file : files) {
      const Part part = wanted_part(file);
      if (part == Part::none) continue;
      MODELD_ASSIGN(auto bytes, MemoryFile::create());
      known_.push_back({file, part, std::move(bytes)});
    }
    std::sort(known_.begin(), known_.end(),
              [](const Known& a, const Known& b) { return a.file.path < b.file.path; });
    std::vector<Known*> all;
    std::vector<FilePiece> pieces;
    for (Known& one : known_) {
      std::uint64_t length = one.file.size;
      if (one.part == Part::header) length = std::min(length, k_first_header);
      if (one.part == Part::beginning) length = std::min(length, k_pickle_beginning);
      all.push_back(&one);
      pieces.push_back({one.file, 0, length, {}});
    }
    return read(all, pieces);
  }

  // Until every header is whole: the files grow, and a worker says which need more.
  Result<void> read_headers() {
    std::vector<Known*> open;
    for (Known& one : known_) {
      if (one.part == Part::header) open.push_back(&one);
    }
    while (!open.empty()) {
      MODELD_ASSIGN(open, unfinished(open));
      std::erase_if(open, [](const Known* one) {
        return one->bytes.size() >= std::min(one->file.size, k_largest_header);
      });
      std::vector<FilePiece> pieces;
      for (const Known* one : open) {
        const std::uint64_t have = one->bytes.size();
        const std::uint64_t end =
            std::min({one->file.size, have * k_header_growth, k_largest_header});
        pieces.push_back({one->file, have, end - have, {}});
      }
      MODELD_TRY(read(open, pieces));
    }
    return {};
  }

  Result<std::vector<Known*>> unfinished(const std::vector<Known*>& files) {
    WorkerRequest request = request_of(WorkerRequest::Task::measure);
    json::array sizes;
    for (const Known* one : files) {
      request.files.push_back({one->file.path, one->bytes.size()});
      sizes.push_back(one->file.size);
    }
    request.options["sizes"] = std::move(sizes);
    MODELD_ASSIGN(const auto answer,
                  ask(request, [&](std::size_t i) { return files.at(i)->bytes.open(); }));
    MODELD_ASSIGN(const auto* headers, json_array(answer, "headers"));
    if (headers->size() != files.size())
      return fail(Errc::internal, "measuring headers: an answer for other files");
    std::vector<Known*> open;
    for (std::size_t i = 0; i < files.size(); ++i) {
      if ((*headers)[i].is_null()) open.push_back(files[i]);
    }
    return open;
  }

  Result<json::object> report_of_worker() {
    WorkerRequest request = request_of(WorkerRequest::Task::report);
    request.options = {{"findings", true},
                       {"profile", asked_.profile},
                       {"estimate", true},
                       {"context", asked_.context}};
    for (const Known& one : known_) {
      request.files.push_back({one.file.path, one.file.size});
    }
    MODELD_ASSIGN(auto report,
                  ask(request, [this](std::size_t i) { return known_.at(i).bytes.open(); }));
    auto* files = report.if_contains("files");
    for (auto& file : files != nullptr && files->is_array() ? files->get_array() : no_files_) {
      if (file.is_object()) file.get_object().erase("file");
    }
    return report;
  }

  WorkerRequest request_of(WorkerRequest::Task task) const {
    WorkerRequest request;
    request.task = task;
    request.name = resolved_.repo.name();
    request.memory = services_.config.jobs.worker_memory;
    return request;
  }

  Result<json::object> ask(const WorkerRequest& request,
                           const std::function<Result<Descriptor>(std::size_t)>& open) {
    MODELD_ASSIGN(const auto text, read_from_worker(request, open, job_.progress()));
    MODELD_ASSIGN(auto value, parse_json(text, "a worker's answer"));
    if (!value.is_object()) return fail(Errc::internal, "parsing a worker's answer: no object");
    return std::move(value.get_object());
  }

  Services& services_;
  Job& job_;
  RemoteCheck asked_;
  fetch::HubClient client_;
  fetch::Token token_;
  JobHost host_;
  fetch::Resolved resolved_;
  std::vector<Known> known_;
  std::uint64_t read_ = 0;
  json::array no_files_;
};

} // namespace

JobRequest check_request(const RemoteCheck& check, std::uint32_t uid, fetch::Token token) {
  JobRequest request;
  request.kind = "check";
  request.ref = check.ref.str();
  request.key = fmt::format("check {} {} {}{}", check.ref.str(), check.profile, check.context,
                            token.empty() ? std::string() : fmt::format(" user {}", uid));
  request.detail = {
      {"ref", check.ref.str()}, {"profile", check.profile}, {"context", check.context}};
  request.uid = uid;
  request.token = std::move(token);
  return request;
}

Result<json::object> run_remote_check(Services& services, Job& job) {
  RemoteCheck asked;
  MODELD_ASSIGN(const auto ref, json_string(job.detail(), "ref"));
  MODELD_ASSIGN(asked.ref, ModelRef::parse(ref));
  MODELD_ASSIGN(asked.profile, json_string(job.detail(), "profile"));
  MODELD_ASSIGN(asked.context, json_uint(job.detail(), "context"));
  MODELD_ASSIGN(auto client, fetch::HubClient::create(hub_options(services)));
  MODELD_ASSIGN(auto token, hub_token(services, job.token()));
  auto report = Look(services, job, std::move(asked), std::move(client), std::move(token)).run();
  if (!report)
    return fail(std::move(report).error().context(fmt::format("checking '{}'", job.ref())));
  return report;
}

} // namespace modeld::daemon
