// SPDX-License-Identifier: Apache-2.0
// Which GGUF file a tag means (hub-protocol.md 5.1 and 5.5).
#include "fetch/selection.hpp"
#include "fetch/shard_name.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <map>
#include <tuple>

namespace modeld::fetch {
namespace {

// Files beside models: projectors, importance matrices and draft models.
constexpr std::array<std::string_view, 6> k_not_models{"mmproj",  "imatrix", "mtp-",
                                                       "eagle3-", "dflash-", "dspark-"};
constexpr std::array<std::string_view, 2> k_default_tags{"q4_k_m", "q8_0"};

std::string to_lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1); // npos + 1 is 0
}

std::string_view folder_of(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view{} : path.substr(0, slash + 1);
}

bool is_gguf(const ListedFile& file) {
  return to_lower(file.path).ends_with(".gguf");
}

bool is_model(const ListedFile& file) {
  const std::string name = to_lower(base_name(file.path));
  return is_gguf(file) &&
         std::none_of(k_not_models.begin(), k_not_models.end(),
                      [&](std::string_view word) { return name.find(word) != std::string::npos; });
}

bool is_edge(char c) {
  return c == '-' || c == '.' || c == '/';
}

/// How well a path carries the tag: 0 not at all, 1 as a whole token somewhere, 2 as the last token
/// of the name (before a part number and the ending), 3 so and without a label prefix like "UD-".
int fit(std::string_view path, std::string_view tag) {
  std::string lower = to_lower(path);
  if (const auto shard = parse_shard_name(lower)) {
    lower =
        lower.substr(0, lower.size() - std::string_view("-00001-of-00001.gguf").size()) + ".gguf";
  }
  int best = 0;
  for (auto at = lower.find(tag); at != std::string::npos; at = lower.find(tag, at + 1)) {
    const auto end = at + tag.size();
    const bool whole =
        (at == 0 || is_edge(lower[at - 1])) && end < lower.size() && is_edge(lower[end]);
    if (!whole) continue;
    const bool last = lower.substr(end) == ".gguf";
    const bool prefixed = at >= 4 && lower.substr(at - 4, 4) == "-ud-";
    best = std::max(best, last ? (prefixed ? 2 : 3) : 1);
  }
  return best;
}

/// One model: a file, or all parts of a split.
struct Model {
  std::string name; ///< path, or the set's
  std::vector<ListedFile> parts;
  std::uint32_t count = 1;
};

std::vector<Model> models_of(std::span<const ListedFile> files) {
  std::map<std::string, Model> models;
  for (const ListedFile& file : files) {
    if (!is_model(file)) continue;
    const auto shard = parse_shard_name(file.path);
    Model& model = models[shard ? shard->set : file.path];
    model.name = shard ? shard->set : file.path;
    model.count = shard ? shard->count : 1;
    model.parts.push_back(file);
  }
  std::vector<Model> list;
  for (auto& [name, model] : models) {
    std::sort(model.parts.begin(), model.parts.end(),
              [](const ListedFile& a, const ListedFile& b) { return a.path < b.path; });
    list.push_back(std::move(model));
  }
  return list;
}

std::string names_of(const std::vector<Model>& models) {
  constexpr std::size_t k_shown = 40;
  std::vector<std::string> names;
  for (const Model& model : models) {
    if (names.size() == k_shown) {
      names.push_back(fmt::format("and {} more", models.size() - k_shown));
      break;
    }
    names.push_back(model.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

/// The models that carry the tag best.
std::vector<Model> best_fits(const std::vector<Model>& models, std::string_view tag) {
  std::vector<Model> best;
  int level = 1;
  for (const Model& model : models) {
    const int now = fit(model.parts.front().path, tag);
    if (now < level) continue;
    if (now > level) best.clear();
    level = now;
    best.push_back(model);
  }
  return best;
}

Result<Model> choose(const std::vector<Model>& models, std::string_view tag) {
  const std::string lower = to_lower(tag);
  if (lower.ends_with(".gguf")) {
    for (const Model& model : models) {
      for (const ListedFile& part : model.parts) {
        if (part.path == tag) return model;
      }
    }
    return fail(Errc::not_found, fmt::format("choosing '{}': no such model file, there are {}", tag,
                                             names_of(models)));
  }
  std::vector<Model> found;
  if (!tag.empty()) {
    found = best_fits(models, lower);
  } else {
    for (const std::string_view usual : k_default_tags) {
      if (found.empty()) found = best_fits(models, usual);
    }
    if (found.empty()) found = models;
  }
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    return fail(
        Errc::not_found,
        fmt::format("choosing '{}': no file has that label, there are {}", tag, names_of(models)),
        "labels are compared whole: Q4_K is not Q4_K_M");
  }
  return fail(Errc::conflict,
              fmt::format("choosing '{}': it fits several models: {}", tag, names_of(found)),
              "name one of the files by its path");
}

/// Bits of a precision label in the name ("F16", "BF16", "Q8_0"), 0 where there is none.
int bits_of(std::string_view path) {
  const std::string name = to_lower(path);
  for (std::size_t i = 1; i + 1 < name.size(); ++i) {
    const bool label = (name[i] == 'f' || name[i] == 'q') &&
                       (is_edge(name[i - 1]) || name[i - 1] == 'b' || name[i - 1] == 'i');
    int bits = 0;
    if (label && std::from_chars(&name[i + 1], name.data() + name.size(), bits).ec == std::errc{})
      return bits;
  }
  return 0;
}

/// The projector of a model: in its folder or one above, the deepest first, then the one of the
/// same label, then the nearest in bits.
std::optional<ListedFile> projector_for(std::span<const ListedFile> files, const Model& model,
                                        std::string_view tag) {
  const std::string label = tag.empty() ? std::string() : fmt::format("-{}.", to_lower(tag));
  const std::string_view folder = folder_of(model.parts.front().path);
  const int bits = bits_of(model.parts.front().path);
  const ListedFile* best = nullptr;
  for (const ListedFile& file : files) {
    if (!is_gguf(file) || to_lower(base_name(file.path)).find("mmproj") == std::string::npos)
      continue;
    if (!folder.starts_with(folder_of(file.path))) continue;
    const auto rank = [&](const ListedFile& one) {
      const bool same = !label.empty() && to_lower(one.path).find(label) != std::string::npos;
      return std::tuple(-static_cast<long>(folder_of(one.path).size()), same ? 0 : 1,
                        std::abs(bits_of(one.path) - bits));
    };
    if (best == nullptr || rank(file) < rank(*best)) best = &file;
  }
  return best == nullptr ? std::nullopt : std::optional(*best);
}

} // namespace

bool has_gguf(std::span<const ListedFile> files) {
  return std::any_of(files.begin(), files.end(), is_model);
}

Result<GgufFiles> select_gguf(std::span<const ListedFile> files, std::string_view tag) {
  const std::vector<Model> models = models_of(files);
  if (models.empty()) return fail(Errc::not_found, "choosing a GGUF file: the repository has none");
  MODELD_ASSIGN(const Model model, choose(models, tag));
  if (model.parts.size() != model.count) {
    std::vector<std::uint32_t> missing;
    for (std::uint32_t number = 1; number <= model.count && missing.size() < 20; ++number) {
      const bool there =
          std::any_of(model.parts.begin(), model.parts.end(), [&](const ListedFile& part) {
            return parse_shard_name(part.path)->number == number;
          });
      if (!there) missing.push_back(number);
    }
    return fail(Errc::not_found, fmt::format("choosing '{}': the repository lacks parts {} of {}",
                                             model.name, fmt::join(missing, ", "), model.count));
  }
  return GgufFiles{model.parts, projector_for(files, model, tag)};
}

} // namespace modeld::fetch
