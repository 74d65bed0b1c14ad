// SPDX-License-Identifier: Apache-2.0
#include "schema/model_ref.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace modeld {
namespace {

constexpr std::size_t k_max_repo_part = 96;
constexpr std::size_t k_max_revision = 255;
constexpr std::size_t k_max_path_part = 255;
constexpr std::size_t k_max_path = 4096;
constexpr std::string_view k_ref_hint =
    "write org/name[@revision][:selector], for example Qwen/Qwen3-0.6B@main:Q4_K_M";

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_word(char c) {
  return is_letter(c) || (c >= '0' && c <= '9') || c == '_';
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
}

std::string check_repo_part(std::string_view part) {
  if (part.empty()) return "a part of the name is empty";
  if (part.size() > k_max_repo_part) {
    return fmt::format("a part has {} characters, allowed are {}", part.size(), k_max_repo_part);
  }
  if (!std::all_of(part.begin(), part.end(),
                   [](char c) { return is_word(c) || c == '.' || c == '-'; })) {
    return "allowed characters are A-Z a-z 0-9 _ . -";
  }
  if (!is_word(part.front()) || !is_word(part.back())) {
    return "a part starts and ends with a letter, a digit or _";
  }
  if (part.find("--") != std::string_view::npos || part.find("..") != std::string_view::npos) {
    return "-- and .. are not allowed";
  }
  if (part.ends_with(".git")) return "a name does not end in .git";
  return {};
}

Result<void> check_revision(std::string_view revision) {
  const bool bad = revision.empty() || revision.size() > k_max_revision ||
                   revision.find("..") != std::string_view::npos || revision.front() == '/' ||
                   revision.back() == '/' ||
                   std::any_of(revision.begin(), revision.end(), [](char c) {
                     return is_control(c) || c == ' ' || c == '\\' || c == ':' || c == '?' ||
                            c == '*' || c == '[' || c == '~' || c == '^';
                   });
  if (!bad) return {};
  return fail(
      Errc::invalid_argument,
      fmt::format("reading revision '{}': not a branch, a tag, refs/pr/N or a commit", revision),
      std::string(k_ref_hint));
}

} // namespace

Result<RepoId> RepoId::parse(std::string_view text) {
  std::string wrong;
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) {
    wrong = check_repo_part(text);
  } else {
    wrong = check_repo_part(text.substr(0, slash));
    if (wrong.empty()) wrong = check_repo_part(text.substr(slash + 1));
  }
  if (!wrong.empty()) {
    return fail(Errc::invalid_argument, fmt::format("reading repository '{}': {}", text, wrong),
                std::string(k_ref_hint));
  }
  return RepoId{std::string(text)};
}

std::string_view RepoId::org() const {
  const auto slash = text.find('/');
  return slash == std::string::npos ? std::string_view{} : std::string_view(text).substr(0, slash);
}

std::string_view RepoId::name() const {
  const auto slash = text.find('/');
  return slash == std::string::npos ? std::string_view(text)
                                    : std::string_view(text).substr(slash + 1);
}

Result<ModelRef> ModelRef::parse(std::string_view text) {
  ModelRef ref;
  const auto at = text.find('@');
  const auto colon = text.find(':', at == std::string_view::npos ? 0 : at);
  MODELD_ASSIGN(ref.repo, RepoId::parse(text.substr(0, std::min(at, colon))));
  if (at != std::string_view::npos) {
    const auto revision =
        text.substr(at + 1, colon == std::string_view::npos ? colon : colon - at - 1);
    MODELD_TRY(check_revision(revision));
    ref.revision = revision;
  }
  if (colon != std::string_view::npos) {
    ref.selector = text.substr(colon + 1);
    if (auto ok = check_repo_path(ref.selector); !ok) {
      return fail(std::move(ok).error().context(fmt::format("reading selector of '{}'", text)));
    }
  }
  return ref;
}

std::string ModelRef::str() const {
  std::string text = repo.text;
  if (!revision.empty()) text += '@' + revision;
  if (!selector.empty()) text += ':' + selector;
  return text;
}

std::string_view ModelRef::revision_or_main() const {
  return revision.empty() ? std::string_view("main") : std::string_view(revision);
}

bool is_commit(std::string_view revision) {
  return revision.size() == 40 && std::all_of(revision.begin(), revision.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

Result<void> check_repo_path(std::string_view path) {
  const auto refuse = [path](std::string_view why) {
    return fail(Errc::invalid_argument, fmt::format("reading path '{}': {}", path, why));
  };
  if (path.empty()) return fail(Errc::invalid_argument, "reading path '': it is empty");
  if (path.size() > k_max_path) return refuse("longer than 4096 bytes");
  if (std::any_of(path.begin(), path.end(), is_control)) return refuse("has a control character");
  if (path.find('\\') != std::string_view::npos) return refuse("has a backslash");
  // A name that another system takes for one on a drive (C:x) leaves the folder there.
  if (path.size() >= 2 && path[1] == ':' && is_letter(path[0])) {
    return refuse("begins as the name of a drive does");
  }
  std::size_t start = 0;
  while (start <= path.size()) {
    const auto end = std::min(path.find('/', start), path.size());
    const auto part = path.substr(start, end - start);
    if (part.empty() || part == "." || part == "..") {
      return refuse("each part must be a name, not empty, '.' or '..'");
    }
    if (part.size() > k_max_path_part) return refuse("a part is longer than 255 bytes");
    start = end + 1;
  }
  return {};
}

} // namespace modeld
