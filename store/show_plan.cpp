// SPDX-License-Identifier: Apache-2.0
#include "store/show.hpp"
#include "store/show_ollama.hpp"
#include "validate/sha256.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace modeld::store {
namespace {

constexpr std::array<std::string_view, 6> k_targets{"huggingface", "ollama",     "lmstudio",
                                                    "llamacpp",    "models-dir", "folder"};

bool is_gguf(std::string_view path) {
  return path.size() > 5 && path.ends_with(".gguf");
}

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

std::string replace_all(std::string text, char from, std::string_view to) {
  std::string out;
  for (const char c : text) {
    if (c == from) {
      out += to;
    } else {
      out += c;
    }
  }
  return out;
}

struct Gguf {
  std::string path;
  Sha256Digest blob;
  std::uint64_t size = 0;
};

/// GGUF files of the snapshot, then the variants.
Result<std::vector<Gguf>> gguf_files(const ShowSubject& subject) {
  std::vector<Gguf> files;
  for (const SnapshotFile& file : subject.snapshot.files) {
    if (is_gguf(file.path)) files.push_back({file.path, file.sha256, file.size});
  }
  for (const Variant& variant : subject.variants) {
    if (subject.snapshot.find(variant.file_name) != nullptr) continue; // a file of it, kept alone
    files.push_back({variant.file_name, variant.result, variant.size});
  }
  if (!files.empty()) return files;
  return fail(Errc::not_found,
              fmt::format("showing '{}': there is no GGUF file in it", subject.snapshot.repo.text),
              "build one first, for example with modelctl get NAME:Q4_K_M");
}

/// Two files in one folder need two names; the second one gets its folder's as a prefix.
class Names {
public:
  std::string take(const std::string& path) {
    std::string name = base_name(path);
    if (std::find(taken_.begin(), taken_.end(), name) != taken_.end()) {
      name = replace_all(path, '/', "-");
    }
    taken_.push_back(name);
    return name;
  }

private:
  std::vector<std::string> taken_;
};

// ---- Hugging Face: blobs first, then the links, refs last, so that a reader at any moment finds
// nothing or everything

std::string lfs_pointer(const SnapshotFile& file) {
  return fmt::format("version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize {}\n",
                     file.sha256.hex(), file.size);
}

/// The listed git id of a large file is that of its pointer.
bool is_large(const SnapshotFile& file) {
  const std::string pointer = lfs_pointer(file);
  return validate::git_blob_id(std::as_bytes(std::span(pointer))) == file.git_oid;
}

/// The name of a blob there: the SHA-256 of large files, the git id of small ones.
std::string etag_of(const SnapshotFile& file) {
  return is_large(file) ? file.sha256.hex() : file.git_oid.hex();
}

/// trees/<commit>.json, version 1: what the commit has. By it huggingface_hub knows that files
/// which are not here are missing, and does not take the folder for the whole commit when it is
/// offline. Of what is here in whole there is none: nothing depends on it.
std::string tree_listing(const ShowSubject& subject) {
  boost::json::object files;
  for (const ListedFile& listed : subject.listing) {
    const SnapshotFile* here = subject.snapshot.find(listed.path);
    boost::json::object file{{"size", listed.size}, {"blob_id", listed.git_oid.hex()}};
    const bool large =
        here != nullptr
            ? is_large(*here)
            : listed.sha256 && is_large({listed.path, listed.size, listed.git_oid, *listed.sha256});
    if (large) {
      file["lfs_sha256"] = here != nullptr ? here->sha256.hex() : listed.sha256->hex();
      file["lfs_size"] = listed.size;
    }
    files[listed.path] = std::move(file);
  }
  return boost::json::serialize(
      boost::json::object{{"format_version", 1}, {"files", std::move(files)}});
}

std::string up_to_repo(const std::string& path) {
  std::string up = "../../";
  for (const char c : path) {
    if (c == '/') up += "../";
  }
  return up;
}

std::vector<ShownFile> plan_huggingface(const ShowSubject& subject) {
  const Snapshot& snapshot = subject.snapshot;
  const std::string repo = "models--" + replace_all(snapshot.repo.text, '/', "--");
  const std::string folder = fmt::format("{}/snapshots/{}", repo, snapshot.commit.hex());
  std::vector<ShownFile> blobs;
  std::vector<ShownFile> links;
  const auto add = [&](const std::string& path, const std::string& etag, const Sha256Digest& blob) {
    const std::string place = fmt::format("{}/blobs/{}", repo, etag);
    const bool known = std::any_of(blobs.begin(), blobs.end(),
                                   [&](const ShownFile& file) { return file.path == place; });
    if (!known) blobs.push_back({place, blob, {}, {}});
    links.push_back({folder + '/' + path, {}, {}, up_to_repo(path) + "blobs/" + etag});
  };
  for (const SnapshotFile& file : snapshot.files) {
    add(file.path, etag_of(file), file.sha256);
  }
  for (const Variant& variant : subject.variants) {
    if (snapshot.find(variant.file_name) != nullptr) continue;
    add(variant.file_name, variant.result.hex(), variant.result);
  }
  // In front of the links: a folder that a reader can see says what it has not.
  if (not_shown(ShowTarget::huggingface, subject).files > 0) {
    blobs.push_back({fmt::format("{}/trees/{}.json", repo, snapshot.commit.hex()),
                     {},
                     tree_listing(subject),
                     {}});
  }
  blobs.insert(blobs.end(), links.begin(), links.end());
  for (const std::string& revision : subject.revisions) {
    blobs.push_back({fmt::format("{}/refs/{}", repo, revision), {}, snapshot.commit.hex(), {}});
  }
  return blobs;
}

// ---- programs that look for GGUF files

Result<std::vector<ShownFile>> plan_lmstudio(const ShowSubject& subject) {
  MODELD_ASSIGN(const auto files, gguf_files(subject));
  const RepoId& repo = subject.snapshot.repo;
  const std::string publisher(repo.org().empty() ? "huggingface" : repo.org());
  Names names;
  std::vector<ShownFile> plan;
  for (const Gguf& file : files) {
    plan.push_back({fmt::format("{}/{}/{}", publisher, repo.name(), names.take(file.path)),
                    file.blob,
                    {},
                    {}});
  }
  return plan;
}

Result<std::vector<ShownFile>> plan_models_dir(const ShowSubject& subject) {
  MODELD_ASSIGN(const auto files, gguf_files(subject));
  Names names;
  std::vector<ShownFile> plan;
  for (const Gguf& file : files) {
    plan.push_back({names.take(file.path), file.blob, {}, {}});
  }
  return plan;
}

/// The label between the last '-' or '.' and ".gguf": what people write behind the colon.
std::string tag_of(const std::string& path) {
  const std::string stem = base_name(path).substr(0, base_name(path).size() - 5);
  const auto at = stem.find_last_of("-.");
  return at == std::string::npos ? "latest" : stem.substr(at + 1);
}

Result<std::vector<ShownFile>> plan_llamacpp(const ShowSubject& subject) {
  MODELD_ASSIGN(const auto files, gguf_files(subject));
  const RepoId& repo = subject.snapshot.repo;
  Names names;
  std::vector<ShownFile> plan;
  std::vector<ShownFile> manifests;
  for (const Gguf& file : files) {
    const std::string name = names.take(file.path);
    const std::string stem = repo.org().empty() ? std::string(repo.name())
                                                : fmt::format("{}_{}", repo.org(), repo.name());
    plan.push_back({fmt::format("{}_{}", stem, name), file.blob, {}, {}});
    const boost::json::object manifest{
        {"ggufFile", boost::json::object{
                         {"rfilename", name}, {"size", file.size}, {"blobId", file.blob.hex()}}}};
    manifests.push_back(
        {fmt::format("manifest={}={}={}.json", repo.org(), repo.name(), tag_of(file.path)),
         {},
         boost::json::serialize(manifest),
         {}});
  }
  plan.insert(plan.end(), manifests.begin(), manifests.end());
  return plan;
}

std::vector<ShownFile> plan_folder(const ShowSubject& subject) {
  std::vector<ShownFile> plan;
  for (const SnapshotFile& file : subject.snapshot.files) {
    plan.push_back({file.path, file.sha256, {}, {}});
  }
  for (const Variant& variant : subject.variants) {
    if (subject.snapshot.find(variant.file_name) != nullptr) continue;
    plan.push_back({variant.file_name, variant.result, {}, {}});
  }
  return plan;
}

// ---- Ollama

Result<std::vector<ShownFile>> plan_ollama(const ShowSubject& subject) {
  MODELD_ASSIGN(const auto files, gguf_files(subject));
  const RepoId& repo = subject.snapshot.repo;
  const std::string place = fmt::format("manifests/hf.co/{}/{}",
                                        repo.org().empty() ? "library" : repo.org(), repo.name());
  const auto facts_of = [&subject](const std::string& path) -> const GgufFacts* {
    const auto at = std::find_if(subject.facts.begin(), subject.facts.end(),
                                 [&path](const auto& known) { return known.first == path; });
    return at == subject.facts.end() ? nullptr : &at->second;
  };
  const auto is_projector = [&](const Gguf& file) {
    const auto* facts = facts_of(file.path);
    return facts != nullptr && facts->architecture == k_projector_architecture;
  };
  std::optional<OllamaProjector> projector;
  if (const auto at = std::find_if(files.begin(), files.end(), is_projector); at != files.end()) {
    projector = OllamaProjector{at->blob, at->size};
  }
  std::vector<ShownFile> plan;
  std::vector<ShownFile> manifests;
  const auto add = [](std::vector<ShownFile>& files_of, ShownFile file) {
    const bool there =
        std::any_of(files_of.begin(), files_of.end(),
                    [&file](const ShownFile& known) { return known.path == file.path; });
    if (!there) files_of.push_back(std::move(file));
  };
  if (projector) plan.push_back({"blobs/sha256-" + projector->blob.hex(), projector->blob, {}, {}});
  for (const Gguf& file : files) {
    const auto* facts = facts_of(file.path);
    // A part of a split model has none: Ollama loads no such thing.
    if (facts == nullptr || is_projector(file)) continue;
    const OllamaModel model = describe_for_ollama(*facts, file.blob, file.size, projector);
    add(plan, {"blobs/sha256-" + file.blob.hex(), file.blob, {}, {}});
    for (const std::string& layer : model.texts) {
      const auto digest = validate::sha256_of(std::as_bytes(std::span(layer)));
      add(plan, {"blobs/sha256-" + digest.hex(), {}, layer, {}});
    }
    add(manifests, {fmt::format("{}/{}", place, tag_of(file.path)), {}, model.manifest, {}});
  }
  if (manifests.empty()) {
    return fail(
        Errc::unsupported,
        fmt::format("showing '{}' to Ollama: no single GGUF file; it cannot load split ones",
                    repo.text),
        "join the parts first with modelctl merge");
  }
  plan.insert(plan.end(), manifests.begin(), manifests.end());
  return plan;
}

} // namespace

std::string_view slug(ShowTarget target) {
  return k_targets[static_cast<std::size_t>(target)];
}

std::optional<ShowTarget> show_target_from_slug(std::string_view text) {
  for (std::size_t i = 0; i < k_targets.size(); ++i) {
    if (k_targets[i] == text) return static_cast<ShowTarget>(i);
  }
  return std::nullopt;
}

NotShown not_shown(ShowTarget target, const ShowSubject& subject) {
  NotShown missing;
  if (target != ShowTarget::huggingface && target != ShowTarget::folder) return missing;
  missing.any = subject.listing.empty();
  for (const ListedFile& file : subject.listing) {
    if (subject.snapshot.find(file.path) != nullptr) continue;
    missing.any = true;
    ++missing.files;
    missing.bytes += file.size;
  }
  return missing;
}

std::vector<std::string> shown_names(const LinkRecord& link) {
  const auto target = show_target_from_slug(link.target);
  if (target == ShowTarget::folder) return {link.root};
  std::vector<std::string> names;
  const std::string manifests = link.root + "/manifests/";
  for (const LinkedFile& file : link.files) {
    std::string name;
    if (target == ShowTarget::huggingface) {
      const auto at = file.path.find("/snapshots/" + link.commit.hex());
      if (at != std::string::npos) name = file.path.substr(0, at + 11 + 40);
    } else if (target == ShowTarget::ollama) {
      if (!file.path.starts_with(manifests)) continue;
      name = file.path.substr(manifests.size());
      name[name.rfind('/')] = ':';
    } else if (file.blob) {
      name = file.path;
    }
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(std::move(name));
    }
  }
  return names;
}

Result<std::vector<ShownFile>> plan_show(ShowTarget target, const ShowSubject& subject) {
  switch (target) {
  case ShowTarget::huggingface:
    return plan_huggingface(subject);
  case ShowTarget::ollama:
    return plan_ollama(subject);
  case ShowTarget::lmstudio:
    return plan_lmstudio(subject);
  case ShowTarget::llamacpp:
    return plan_llamacpp(subject);
  case ShowTarget::models_dir:
    return plan_models_dir(subject);
  default:
    return plan_folder(subject);
  }
}

} // namespace modeld::store
