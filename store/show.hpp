// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "store/gguf_facts.hpp"
#include "store/links.hpp"
#include "store/store.hpp"
#include "store/variant.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace modeld::store {

/// Whose folder a model is shown in (hub-protocol.md section 4).
enum class ShowTarget {
  huggingface, ///< the Hub cache: models--org--name/{blobs,snapshots,refs}; llama.cpp reads it too
  ollama,      ///< OLLAMA_MODELS: blobs/sha256-<hex> and manifests/hf.co/<org>/<name>/<tag>
  lmstudio,    ///< <publisher>/<model>/<file>.gguf
  llamacpp,    ///< LLAMA_CACHE of before 2026: <user>_<repo>_<file>.gguf and manifest=...json
  models_dir,  ///< llama-server --models-dir: <file>.gguf
  folder,      ///< every file under its own path
};
std::string_view slug(ShowTarget target);
std::optional<ShowTarget> show_target_from_slug(std::string_view text);

/// A model as it is to be shown: GGUF files are those of the snapshot and the variants.
struct ShowSubject {
  Snapshot snapshot;
  std::vector<Variant> variants;
  std::vector<std::string> revisions; ///< refs of the Hugging Face cache: "main"
  /// Of each GGUF that is shown to Ollama, by its path in the snapshot's view.
  std::vector<std::pair<std::string, GgufFacts>> facts;
  /// What the commit has in all, where that is known: `snapshot` may hold a part of it.
  std::vector<ListedFile> listing = {};
};

struct ShowOptions {
  std::filesystem::path root;   ///< absolute
  std::optional<LinkForm> form; ///< by hand; else the safest that works
  bool allow_copy = false;      ///< where nothing else works
  bool allow_symlink = true;    ///< off for readers that do not follow them, or in containers
  std::optional<std::uint32_t> reader_uid; ///< account that has to reach the files
  std::uint32_t uid = 0;                   ///< who asked
  bool standing = false;                   ///< see LinkRecord
  bool replace = false; ///< what the same record showed before and is not part of this goes; else
                        ///< it stays beside it
};

/// One file of the plan: the bytes of a blob, a small text, or a relative link to another file of
/// it.
struct ShownFile {
  std::string path; ///< relative to the root
  std::optional<Sha256Digest> blob;
  std::string text;   ///< where there is no blob and no target
  std::string target; ///< of a relative symbolic link
};

/// Pure: what the target wants to see, in the order in which it has to appear.
Result<std::vector<ShownFile>> plan_show(ShowTarget target, const ShowSubject& subject);

struct FormChoice {
  LinkForm form = LinkForm::hardlink;
  std::string why; ///< for people
};
/// How blobs will be shown below this folder, found by trying and leaving nothing behind. no_space,
/// denied or unsupported where nothing that is allowed works; says what would.
Result<FormChoice> choose_form(Store& store, const ShowOptions& options);

/// What a folder that stands for a whole commit does not show of it.
struct NotShown {
  bool any = false;
  std::uint64_t files = 0; ///< 0 where nothing is known of them
  std::uint64_t bytes = 0;
};
/// Of programs that take single files nothing is missing.
NotShown not_shown(ShowTarget target, const ShowSubject& subject);

/// What can be known before there is anything to show: whether the reader reaches the folder, and
/// whether something that is allowed works in it.
Result<FormChoice> check_place(Store& store, const ShowOptions& options);

struct ShowReport {
  LinkRecord link;
  FormChoice choice;
  NotShown missing;
  std::vector<std::string> already_there; ///< equal files that others made: left alone, not ours
};

/// Makes the files; never overwrites what it did not make (conflict names it, and what was made in
/// this call is removed again). Showing again what is shown is fine and mends it.
Result<ShowReport> show(Store& store, ShowTarget target, const ShowSubject& subject,
                        const ShowOptions& options);

/// Removes what show() made, as far as it still is that; folders that are empty then. Answers with
/// the paths that were left because somebody changed them.
Result<std::vector<std::string>> hide(Store& store, std::string_view id);

Result<std::vector<LinkRecord>> list_links(Store& store);

/// Makes again what is gone, or leads nowhere, where its blob is here. How many there were.
Result<std::size_t> mend_links(Store& store);

/// How the target's own program is told to open what a record shows: a folder for the Hugging Face
/// cache and a plain folder, "hf.co/org/name:tag" for Ollama, else the paths of model files.
std::vector<std::string> shown_names(const LinkRecord& link);

struct LinkProblem {
  std::string id;
  std::string path;
  std::string message; ///< gone, dead, changed
};
/// Every shown file that is not what it was.
Result<std::vector<LinkProblem>> check_links(Store& store);

} // namespace modeld::store
