// SPDX-License-Identifier: Apache-2.0
#include "fetch/selection.hpp"

#include "fetch/shard_name.hpp"
#include "schema/json.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace modeld::fetch {
namespace {

constexpr std::string_view k_index = "model.safetensors.index.json";

// Beside weights: names at the top of the repository, in lower case.
constexpr std::array<std::string_view, 29> k_patterns{"config.json",
                                                      "generation_config.json",
                                                      "configuration*.py",
                                                      "tokenizer*",
                                                      "vocab*",
                                                      "merges*",
                                                      "special_tokens_map*",
                                                      "added_tokens*",
                                                      "*.model",
                                                      "*.tiktoken",
                                                      "sentencepiece*",
                                                      "spiece*",
                                                      "chat_template*",
                                                      "additional_chat_templates/*",
                                                      "preprocessor_config.json",
                                                      "processor_config.json",
                                                      "video_preprocessor_config.json",
                                                      "image_processor*.json",
                                                      "params.json",
                                                      "tekken.json",
                                                      "license*",
                                                      "licence*",
                                                      "notice*",
                                                      "readme*",
                                                      "*.index.json",
                                                      "hf_quant_config.json",
                                                      "modules.json",
                                                      "*_pooling/config.json",
                                                      "rwkv_vocab*"};

constexpr std::array<std::string_view, 6> k_pickles{".bin",  ".pt",  ".pth",
                                                    ".ckpt", ".pkl", ".msgpack"};

std::string to_lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

bool is_pickle(const ListedFile& file) {
  return std::any_of(k_pickles.begin(), k_pickles.end(),
                     [&](std::string_view end) { return file.path.ends_with(end); });
}

bool at_top(std::string_view path) {
  return path.find('/') == std::string_view::npos;
}

const ListedFile* find_file(std::span<const ListedFile> files, std::string_view path) {
  const auto it = std::find_if(files.begin(), files.end(),
                               [path](const ListedFile& file) { return file.path == path; });
  return it == files.end() ? nullptr : &*it;
}

/// Length of the pattern's first element if it matches the character, else 0.
std::size_t match_one(std::string_view pattern, char c) {
  const auto close = pattern[0] == '[' ? pattern.find(']', pattern.starts_with("[!") ? 3 : 2)
                                       : std::string_view::npos;
  if (close == std::string_view::npos) return pattern[0] == '?' || pattern[0] == c ? 1 : 0;
  std::string_view set = pattern.substr(1, close - 1);
  const bool negated = set.starts_with('!');
  if (negated) set.remove_prefix(1);
  bool in = false;
  for (std::size_t i = 0; i < set.size(); ++i) {
    const bool range = i + 2 < set.size() && set[i + 1] == '-';
    in = in || (range ? set[i] <= c && c <= set[i + 2] : set[i] == c);
    if (range) i += 2;
  }
  return in != negated ? close + 1 : 0;
}

/// The values of "weight_map", each once, sorted.
Result<std::vector<std::string>> weights_in_index(std::string_view text) {
  MODELD_ASSIGN(const boost::json::value value, parse_json(text, k_index));
  const auto* object = value.if_object();
  const auto* map = object == nullptr ? nullptr : object->if_contains("weight_map");
  if (map == nullptr || !map->is_object() || map->get_object().empty()) {
    return fail(Errc::malformed,
                fmt::format("reading '{}': weight_map is missing or empty", k_index));
  }
  std::set<std::string> names;
  for (const auto& [tensor, file] : map->get_object()) {
    if (!file.is_string()) {
      return fail(Errc::malformed, fmt::format("reading '{}': the file of '{}' is not a string",
                                               k_index, std::string_view(tensor)));
    }
    std::string name(file.get_string());
    MODELD_TRY(check_repo_path(name));
    names.insert(std::move(name));
  }
  return std::vector<std::string>(names.begin(), names.end());
}

/// Without an index: one file, or one complete set.
Result<std::vector<std::string>> weights_by_name(const std::vector<std::string>& candidates) {
  const auto plain = std::find(candidates.begin(), candidates.end(), "model.safetensors");
  std::map<std::string, std::vector<std::string>> sets;
  for (const std::string& path : candidates) {
    if (const auto shard = parse_shard_name(path)) sets[shard->set].push_back(path);
  }
  const std::size_t ways = sets.size() + (plain != candidates.end() ? 1 : 0);
  if (ways > 1 || (ways == 0 && candidates.size() > 1)) {
    return fail(Errc::conflict,
                fmt::format("choosing weights: several candidates and no {}: {}", k_index,
                            fmt::join(candidates, ", ")),
                "pull the files that you mean with --include");
  }
  if (plain != candidates.end()) return std::vector<std::string>{*plain};
  if (sets.empty()) return candidates;
  const auto& [set, paths] = *sets.begin();
  const std::uint32_t count = parse_shard_name(paths.front())->count;
  if (paths.size() == count) return paths;
  return fail(Errc::not_found, fmt::format("choosing weights: '{}' has {} of its {} parts", set,
                                           paths.size(), count));
}

Error no_weights(std::span<const ListedFile> files) {
  std::vector<std::string> pickles;
  for (const ListedFile& file : files) {
    if (is_pickle(file)) pickles.push_back(file.path);
  }
  if (!pickles.empty()) {
    return Error{
        Errc::unsupported,
        fmt::format("choosing weights: they are there in pickle only ({}), which runs code "
                    "when it is read",
                    pickles.front()),
        "look for a revision or another repository with .safetensors",
        {},
        0};
  }
  if (has_gguf(files)) {
    return Error{Errc::unsupported,
                 "choosing weights: the repository holds GGUF files, not safetensors",
                 "name one of its quantizations to get that file as it is",
                 {},
                 0};
  }
  return Error{Errc::not_found, "choosing weights: the repository has none", "", {}, 0};
}

} // namespace

/// Only the last star has to be tried again, so the time is at most pattern times path.
bool matches_pattern(std::string_view pattern, std::string_view path) {
  std::size_t p = 0;
  std::size_t at = 0;
  auto star = std::string_view::npos;
  std::size_t star_at = 0;
  while (at < path.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_at = at;
      continue;
    }
    const std::size_t used = p < pattern.size() ? match_one(pattern.substr(p), path[at]) : 0;
    if (used > 0) {
      p += used;
      ++at;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      at = ++star_at;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

Result<std::vector<ListedFile>> select_by_patterns(std::span<const ListedFile> files,
                                                   std::span<const std::string> include,
                                                   std::span<const std::string> exclude) {
  const auto any = [](std::span<const std::string> patterns, const std::string& path) {
    return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
      return matches_pattern(pattern.ends_with('/') ? pattern + "*" : pattern, path);
    });
  };
  std::vector<ListedFile> chosen;
  for (const ListedFile& file : files) {
    if ((include.empty() || any(include, file.path)) && !any(exclude, file.path))
      chosen.push_back(file);
  }
  if (chosen.empty() && !files.empty()) {
    return fail(Errc::not_found,
                fmt::format("choosing files: none of {} matches {}{}{}", files.size(),
                            fmt::join(include, " "), exclude.empty() ? "" : " without ",
                            fmt::join(exclude, " ")),
                "patterns are compared with the whole path: '*.json', 'folder/*'");
  }
  return chosen;
}

std::optional<std::string> weight_index_of(std::span<const ListedFile> files) {
  if (find_file(files, k_index) == nullptr) return std::nullopt;
  return std::string(k_index);
}

Result<ConversionFiles> select_for_conversion(std::span<const ListedFile> files,
                                              std::optional<std::string_view> index_json) {
  std::vector<std::string> candidates;
  for (const ListedFile& file : files) {
    const bool weights = file.path.ends_with(".safetensors") && at_top(file.path);
    if (weights && !file.path.starts_with("consolidated")) candidates.push_back(file.path);
  }
  std::vector<std::string> weights;
  if (index_json) {
    MODELD_ASSIGN(weights, weights_in_index(*index_json));
    std::vector<std::string> missing;
    std::copy_if(weights.begin(), weights.end(), std::back_inserter(missing),
                 [&](const std::string& path) { return find_file(files, path) == nullptr; });
    if (!missing.empty()) {
      return fail(Errc::not_found,
                  fmt::format("choosing weights: '{}' names files that the repository "
                              "does not have: {}",
                              k_index, fmt::join(missing, ", ")));
    }
  } else if (candidates.empty()) {
    return fail(no_weights(files));
  } else {
    MODELD_ASSIGN(weights, weights_by_name(candidates));
  }
  ConversionFiles chosen;
  for (const ListedFile& file : files) {
    const bool is_weight = std::find(weights.begin(), weights.end(), file.path) != weights.end();
    const std::string lower = to_lower(file.path);
    const bool wanted =
        std::any_of(k_patterns.begin(), k_patterns.end(), [&](std::string_view pattern) {
          const bool same_depth = at_top(pattern) == at_top(file.path);
          return same_depth && matches_pattern(pattern, lower);
        });
    const bool heavy = file.path.ends_with(".safetensors") || file.path.ends_with(".gguf") ||
                       file.path.ends_with(".onnx") || file.path.ends_with(".h5") ||
                       is_pickle(file);
    if (is_weight) {
      chosen.files.push_back(file);
      chosen.weights.push_back(file.path);
    } else if (heavy) {
      chosen.left.push_back(file.path);
    } else if (wanted) {
      chosen.files.push_back(file);
    }
  }
  return chosen;
}

std::vector<std::vector<std::string>> case_collisions(std::span<const ListedFile> files) {
  std::map<std::string, std::vector<std::string>> by_name;
  for (const ListedFile& file : files) {
    by_name[to_lower(file.path)].push_back(file.path);
  }
  std::vector<std::vector<std::string>> groups;
  for (auto& [name, paths] : by_name) {
    if (paths.size() > 1) groups.push_back(std::move(paths));
  }
  return groups;
}

} // namespace modeld::fetch
