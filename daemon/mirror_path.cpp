// SPDX-License-Identifier: Apache-2.0
#include "daemon/mirror_path.hpp"

#include "daemon/http.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace modeld::daemon {
namespace {

using Kind = MirrorPath::Kind;
using Parts = std::vector<std::string>;

constexpr std::array<std::pair<std::string_view, Kind>, 5> k_api_markers{{
    {"revision", Kind::info},
    {"tree", Kind::tree},
    {"refs", Kind::refs},
    {"paths-info", Kind::paths_info},
    {"auth-check", Kind::auth_check},
}};
constexpr std::array<std::pair<std::string_view, Kind>, 2> k_file_markers{{
    {"resolve", Kind::resolve},
    {"raw", Kind::raw},
}};
// First parts that are never an organisation.
constexpr std::array<std::string_view, 5> k_reserved{"api", "datasets", "spaces", "kernels", "v2"};

std::optional<Parts> decoded_parts(std::string_view raw) {
  Parts parts;
  while (!raw.empty()) {
    raw.remove_prefix(1); // the slash in front
    const auto end = std::min(raw.find('/'), raw.size());
    auto part = percent_decode(raw.substr(0, end));
    if (!part) return {};
    parts.push_back(*std::move(part));
    raw.remove_prefix(end);
  }
  return parts;
}

// A repository's name has one or two parts; the marker stands behind it.
template <class Markers>
MirrorPath split_at_marker(Parts parts, const Markers& markers) {
  for (const std::size_t length : {std::size_t{1}, std::size_t{2}}) {
    if (parts.size() <= length) break;
    for (const auto& [marker, kind] : markers) {
      if (parts[length] != marker) continue;
      MirrorPath path;
      path.kind = kind;
      path.repo = length == 1 ? parts[0] : parts[0] + "/" + parts[1];
      path.rest.assign(parts.begin() + static_cast<std::ptrdiff_t>(length) + 1, parts.end());
      return path;
    }
  }
  return {};
}

MirrorPath api_path(Parts parts) {
  if (parts.size() == 1 && parts[0] == "whoami-v2") return {Kind::whoami, {}, {}};
  if (parts.empty() || parts[0] != "models") return {};
  parts.erase(parts.begin());
  MirrorPath path = split_at_marker(parts, k_api_markers);
  if (path.kind != Kind::other || parts.empty() || parts.size() > 2) return path;
  return {Kind::info, parts.size() == 1 ? parts[0] : parts[0] + "/" + parts[1], {}};
}

} // namespace

std::optional<MirrorPath> parse_mirror_path(std::string_view raw) {
  if (!raw.starts_with('/')) return MirrorPath{};
  auto parts = decoded_parts(raw);
  if (!parts) return {};
  if (parts->front() == "api") {
    parts->erase(parts->begin());
    return api_path(*std::move(parts));
  }
  const bool reserved =
      std::find(k_reserved.begin(), k_reserved.end(), parts->front()) != k_reserved.end();
  if (reserved) return MirrorPath{};
  return split_at_marker(*std::move(parts), k_file_markers);
}

} // namespace modeld::daemon
