// SPDX-License-Identifier: Apache-2.0
// Importance matrices, of the GGUF form and of the old one.
#include "fuzz.hpp"

#include "quantize/recipe/imatrix.hpp"

using namespace modeld::fuzz;
using namespace modeld::quantize;

int modeld::fuzz::fuzz_imatrix(const std::uint8_t* data, std::size_t size) {
  const auto file = read_imatrix(bytes_of(data, size), "imatrix");
  if (!file) return 0;
  std::size_t values = 0;
  for (const auto& [name, entry] : file->entries) {
    require(!entry.counts.empty(), "an entry without counts");
    require(entry.sums.size() % entry.counts.size() == 0, "rows of different lengths");
    values += entry.sums.size();
  }
  require(values * sizeof(float) <= size, "more values than the file has bytes");
  (void)imatrix_statistics(*file);
  (void)make_importance(*file, "imatrix", {});
  return 0;
}
