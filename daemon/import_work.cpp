// SPDX-License-Identifier: Apache-2.0
#include "daemon/import_work.hpp"

#include "daemon/request_body.hpp"
#include "store/bundle.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

namespace modeld::daemon {
namespace {

using boost::json::array;
using boost::json::object;

object adopted_json(const store::Adopted& adopted) {
  return {{"where", adopted.where},   {"repo", adopted.repo.text}, {"commit", adopted.commit.hex()},
          {"files", adopted.files},   {"bytes", adopted.bytes},    {"copied", adopted.copied},
          {"listed", adopted.listed}, {"note", adopted.note}};
}

Result<store::Adopted> import_one_bundle(Services& services, Job& job,
                                         const std::filesystem::path& path) {
  MODELD_ASSIGN(const auto content,
                store::import_bundle(services.store, path, &job.progress(), job.uid()));
  store::Adopted adopted;
  adopted.where = path.string();
  adopted.repo = content.snapshot.repo;
  adopted.commit = content.snapshot.commit;
  adopted.listed = true;
  for (const SnapshotFile& file : content.snapshot.files) {
    ++adopted.files;
    adopted.bytes += file.size;
  }
  for (const store::Variant& variant : content.variants) {
    ++adopted.files;
    adopted.bytes += variant.size;
  }
  adopted.copied = adopted.bytes;
  return adopted;
}

} // namespace

Result<ImportRequest> ImportRequest::from_json(const object& body) {
  ImportRequest request;
  MODELD_ASSIGN(const auto path, required_text(body, "path"));
  request.path = path;
  if (!request.path.is_absolute()) {
    return fail(
        Errc::invalid_argument,
        fmt::format("reading the request: 'path' is '{}', allowed are absolute paths", path));
  }
  MODELD_ASSIGN(const auto source, optional_text(body, "source"));
  if (source && *source == "bundle") {
    request.bundle = true;
  } else if (source) {
    request.source = store::adopt_source_from_slug(*source);
    if (!request.source) {
      return fail(Errc::invalid_argument,
                  fmt::format("reading the request: 'source' is '{}', allowed are huggingface, "
                              "ollama, lmstudio, folder and bundle",
                              *source));
    }
  }
  MODELD_ASSIGN(request.options.dry_run, optional_flag(body, "dry_run"));
  MODELD_ASSIGN(request.options.may_link, optional_flag(body, "may_link"));
  MODELD_ASSIGN(request.options.assume_complete, optional_flag(body, "assume_complete"));
  MODELD_ASSIGN(const auto repo, optional_text(body, "repo"));
  if (repo) {
    MODELD_ASSIGN(request.options.repo, RepoId::parse(*repo));
  }
  return request;
}

Result<object> run_import(Services& services, Job& job) {
  MODELD_ASSIGN(ImportRequest request, ImportRequest::from_json(job.detail()));
  request.options.payer = job.uid();
  job.begin_phase("importing");
  std::error_code ec;
  const bool folder = std::filesystem::is_directory(request.path, ec);
  if (!folder && !request.source) request.bundle = true;
  std::vector<store::Adopted> all;
  if (request.bundle) {
    if (request.options.dry_run) {
      return fail(Errc::invalid_argument,
                  fmt::format("importing '{}': a bundle is read once, while it is stored: there is "
                              "no dry run of it",
                              request.path.string()),
                  fmt::format("tar -tvf '{}' lists it", request.path.string()));
    }
    MODELD_ASSIGN(auto adopted, import_one_bundle(services, job, request.path));
    all.push_back(std::move(adopted));
  } else {
    const auto source = request.source.value_or(store::recognise_source(request.path));
    MODELD_ASSIGN(
        all, store::adopt(services.store, source, request.path, request.options, &job.progress()));
  }
  array adopted;
  for (const store::Adopted& one : all) {
    adopted.push_back(adopted_json(one));
  }
  return object{{"adopted", std::move(adopted)}};
}

} // namespace modeld::daemon
