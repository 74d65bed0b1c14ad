// SPDX-License-Identifier: Apache-2.0
#include "schema/nearest_name.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace modeld {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  using Row = std::vector<std::size_t>;
  Row two_before(b.size() + 1);
  Row before(b.size() + 1);
  Row row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0U);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    two_before.swap(before);
    before.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = before[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, before[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], two_before[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

std::string_view nearest_name(std::string_view name, std::span<const std::string_view> names) {
  const auto best =
      std::min_element(names.begin(), names.end(), [name](std::string_view a, std::string_view b) {
        return edit_distance(name, a) < edit_distance(name, b);
      });
  return best == names.end() ? std::string_view() : *best;
}

} // namespace modeld
