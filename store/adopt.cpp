// SPDX-License-Identifier: Apache-2.0
#include "store/adopt.hpp"

#include "schema/json.hpp"
#include "store/adopt_files.hpp"
#include "store/folder_files.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <set>
#include <sstream>

namespace modeld::store {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 4> k_sources{"huggingface", "ollama", "lmstudio", "folder"};
constexpr std::string_view k_cache_prefix = "models--";

/// Sorted names of the folders in a folder; none where it is not there.
std::vector<std::string> folders_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code ec;
  for (fs::directory_iterator at(folder, ec); !ec && at != fs::directory_iterator();
       at.increment(ec)) {
    if (at->is_directory(ec)) names.push_back(at->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string read_small(const fs::path& path) {
  constexpr std::streamsize k_limit = 64 << 20;
  std::string text(static_cast<std::size_t>(k_limit), '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(text.data(), k_limit);
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  return text;
}

/// "models--org--name": repository names hold no "--" themselves.
Result<RepoId> repo_of_cache(std::string_view folder) {
  std::string text(folder.substr(k_cache_prefix.size()));
  if (const auto at = text.find("--"); at != std::string::npos) text.replace(at, 2, "/");
  return RepoId::parse(text);
}

/// Paths that the cache knows a commit to have; nothing where it does not say.
std::optional<std::set<std::string>> listed_paths(const fs::path& repo, const std::string& commit) {
  const auto parsed = parse_json(read_small(repo / "trees" / (commit + ".json")), "a tree listing");
  if (!parsed || !parsed->is_object()) return std::nullopt;
  const auto* files = parsed->get_object().if_contains("files");
  if (files == nullptr || !files->is_object()) return std::nullopt;
  std::set<std::string> paths;
  for (const auto& file : files->get_object()) {
    paths.emplace(file.key());
  }
  return paths;
}

class Adoption {
public:
  Adoption(Store& store, const AdoptOptions& options, Progress* progress)
      : store_(store), options_(options), files_(store, options, progress) {}

  Result<void> huggingface(const fs::path& root) {
    for (const std::string& name : folders_in(root)) {
      if (!name.starts_with(k_cache_prefix)) continue;
      const auto repo = repo_of_cache(name);
      if (!repo) continue;
      for (const std::string& commit : folders_in(root / name / "snapshots")) {
        MODELD_TRY(cache_snapshot(root / name, *repo, commit));
      }
    }
    return {};
  }

  Result<void> ollama(const fs::path& root) {
    const fs::path manifests = root / "manifests";
    for (const std::string& host : folders_in(manifests)) {
      for (const std::string& space : folders_in(manifests / host)) {
        for (const std::string& model : folders_in(manifests / host / space)) {
          std::error_code ec;
          for (fs::directory_iterator at(manifests / host / space / model, ec);
               !ec && at != fs::directory_iterator(); at.increment(ec)) {
            if (at->is_regular_file(ec)) MODELD_TRY(ollama_model(root, at->path(), space, model));
          }
        }
      }
    }
    return {};
  }

  Result<void> lmstudio(const fs::path& root) {
    for (const std::string& publisher : folders_in(root)) {
      for (const std::string& model : folders_in(root / publisher)) {
        const auto repo = RepoId::parse(publisher + '/' + model);
        if (repo) MODELD_TRY(folder(root / publisher / model, *repo));
      }
    }
    return {};
  }

  Result<void> folder(const fs::path& path, const RepoId& repo) {
    MODELD_ASSIGN(const auto set, open_folder(path));
    std::vector<SourceFile> sources;
    for (const auto& entry : set->entries()) {
      sources.push_back({entry.path, path / entry.path, {}});
    }
    MODELD_TRY(take_all(path.string(), repo, std::nullopt, sources, true, {}));
    return name_local({"main"});
  }

  std::vector<Adopted> take() { return std::move(found_); }

private:
  Result<void> cache_snapshot(const fs::path& repo_folder, const RepoId& repo,
                              const std::string& commit) {
    const fs::path snapshot = repo_folder / "snapshots" / commit;
    const auto set = open_folder(snapshot);
    const auto id = GitOid::parse(commit);
    if (!set || !id) {
      found_.push_back({snapshot.string(),
                        repo,
                        {},
                        0,
                        0,
                        0,
                        false,
                        set ? "its folder is not named by a commit" : set.error().message});
      return {};
    }
    std::vector<SourceFile> sources;
    for (const auto& entry : (*set)->entries()) {
      std::error_code ec;
      const auto target = fs::read_symlink(snapshot / entry.path, ec);
      sources.push_back({entry.path, snapshot / entry.path, ec ? "" : target.filename().string()});
    }
    const auto listed = listed_paths(repo_folder, commit);
    bool complete = options_.assume_complete;
    std::string note = complete ? "" : "the cache does not say which files the commit has";
    if (listed) {
      complete = std::all_of(listed->begin(), listed->end(),
                             [&](const std::string& path) { return (*set)->contains(path); });
      note = complete ? "" : "files of the commit are missing";
    }
    MODELD_TRY(take_all(snapshot.string(), repo, *id, sources, complete, note));
    if (found_.back().listed && !options_.dry_run) return record_refs(repo_folder, repo, *id);
    return {};
  }

  Result<void> record_refs(const fs::path& repo_folder, const RepoId& repo, const GitOid& commit) {
    std::error_code ec;
    const fs::path refs = repo_folder / "refs";
    for (fs::recursive_directory_iterator at(refs, ec);
         !ec && at != fs::recursive_directory_iterator(); at.increment(ec)) {
      if (!at->is_regular_file(ec)) continue;
      const auto text = read_small(at->path());
      if (text.substr(0, 40) != commit.hex()) continue;
      MODELD_TRY(
          store_.record_ref({repo, fs::relative(at->path(), refs).string(), commit, repo, 0}));
    }
    return {};
  }

  Result<void> ollama_model(const fs::path& root, const fs::path& manifest,
                            const std::string& space, const std::string& model) {
    const std::string tag = manifest.filename().string();
    const auto repo = RepoId::parse("ollama/" + (space == "library" ? model : space + '.' + model));
    const auto parsed = parse_json(read_small(manifest), "an Ollama manifest");
    const auto* object = parsed ? parsed->if_object() : nullptr;
    const auto layers =
        object == nullptr ? fail(Errc::malformed, "not an object") : json_array(*object, "layers");
    if (!repo || !layers) return {}; // not a manifest
    std::vector<SourceFile> sources;
    for (const auto& layer : **layers) {
      if (!layer.is_object()) continue;
      const auto type = json_string(layer.get_object(), "mediaType");
      const auto digest = json_string(layer.get_object(), "digest");
      if (!type || !digest || !digest->starts_with("sha256:")) continue;
      const std::string kind = type->substr(type->rfind('.') + 1);
      const std::string hex = digest->substr(7);
      std::string name = kind;
      if (kind == "model") name = fmt::format("{}-{}.gguf", model, tag);
      if (kind == "projector") name = fmt::format("mmproj-{}-{}.gguf", model, tag);
      const bool twice = std::any_of(sources.begin(), sources.end(),
                                     [&name](const SourceFile& s) { return s.path == name; });
      if (!twice) sources.push_back({name, root / "blobs" / ("sha256-" + hex), hex});
    }
    MODELD_TRY(take_all(manifest.string(), *repo, std::nullopt, sources, true, {}));
    return name_local({tag, "main"});
  }

  /// Names for what was adopted last; those that mean something already stay as they are.
  Result<void> name_local(const std::vector<std::string>& revisions) {
    const Adopted& last = found_.back();
    if (!last.listed || options_.dry_run) return {};
    for (const std::string& revision : revisions) {
      if (!ModelRef::parse(last.repo.text + '@' + revision)) continue;
      MODELD_ASSIGN(const auto known, store_.find_ref(last.repo, revision));
      if (known) continue;
      MODELD_TRY(store_.record_ref({last.repo, revision, last.commit, last.repo, now()}));
    }
    return {};
  }

  Result<void> take_all(const std::string& where, const RepoId& repo, std::optional<GitOid> commit,
                        const std::vector<SourceFile>& sources, bool complete,
                        const std::string& note) {
    Adopted adopted{where, repo, commit.value_or(GitOid{}), 0, 0, 0, false, note};
    std::vector<SnapshotFile> files;
    std::vector<BlobHold> holds;
    for (const SourceFile& source : sources) {
      auto taken = files_.take(source, adopted, holds);
      if (!taken && taken.error().code != Errc::digest_mismatch &&
          taken.error().code != Errc::not_found) {
        return fail(std::move(taken).error());
      }
      if (taken) {
        files.push_back(std::move(*taken));
      } else {
        complete = false;
        adopted.note = taken.error().message;
      }
    }
    std::sort(files.begin(), files.end(),
              [](const SnapshotFile& a, const SnapshotFile& b) { return a.path < b.path; });
    if (!commit) adopted.commit = local_commit(files);
    adopted.files = files.size();
    if (complete && !files.empty()) {
      adopted.listed = true;
      if (!options_.dry_run) {
        MODELD_TRY(
            store_.publish_snapshot({repo, adopted.commit, std::move(files)}, options_.payer));
      }
    }
    files_.forget_space(); // it is charged now, or named by nothing
    found_.push_back(std::move(adopted));
    return {};
  }

  Store& store_;
  const AdoptOptions& options_;
  AdoptFiles files_;
  std::vector<Adopted> found_;
};

} // namespace

std::string_view slug(AdoptSource source) {
  return k_sources[static_cast<std::size_t>(source)];
}

std::optional<AdoptSource> adopt_source_from_slug(std::string_view text) {
  for (std::size_t i = 0; i < k_sources.size(); ++i) {
    if (k_sources[i] == text) return static_cast<AdoptSource>(i);
  }
  return std::nullopt;
}

AdoptSource recognise_source(const fs::path& root) {
  std::error_code ec;
  const auto tops = folders_in(root);
  const bool cache = std::any_of(tops.begin(), tops.end(), [&](const std::string& name) {
    return name.starts_with(k_cache_prefix) && fs::is_directory(root / name / "snapshots", ec);
  });
  if (cache) return AdoptSource::huggingface;
  if (fs::is_directory(root / "manifests", ec) && fs::is_directory(root / "blobs", ec)) {
    return AdoptSource::ollama;
  }
  for (const std::string& publisher : tops) {
    for (const std::string& model : folders_in(root / publisher)) {
      for (fs::directory_iterator at(root / publisher / model, ec);
           !ec && at != fs::directory_iterator(); at.increment(ec)) {
        if (at->path().extension() == ".gguf") return AdoptSource::lmstudio;
      }
    }
  }
  return AdoptSource::folder;
}

Result<std::vector<Adopted>> adopt(Store& store, AdoptSource source, const fs::path& root,
                                   const AdoptOptions& options, Progress* progress) {
  std::error_code ec;
  if (!fs::is_directory(root, ec)) {
    return fail(Errc::not_found, fmt::format("importing '{}': no such folder", root.string()));
  }
  Adoption adoption(store, options, progress);
  Result<void> done;
  switch (source) {
  case AdoptSource::huggingface:
    done = adoption.huggingface(root);
    break;
  case AdoptSource::ollama:
    done = adoption.ollama(root);
    break;
  case AdoptSource::lmstudio:
    done = adoption.lmstudio(root);
    break;
  case AdoptSource::folder:
    auto repo = options.repo.text.empty()
                    ? RepoId::parse("local/" + fs::canonical(root, ec).filename().string())
                    : Result<RepoId>(options.repo);
    done = repo ? adoption.folder(root, *repo) : fail(repo.error());
    break;
  }
  if (!done) {
    return fail(std::move(done).error().context(fmt::format("importing '{}'", root.string())));
  }
  return adoption.take();
}

} // namespace modeld::store
