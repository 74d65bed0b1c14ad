// SPDX-License-Identifier: Apache-2.0
// Two parts of a split; the first two bytes say where the second begins.
#include "fuzz.hpp"

#include "validate/gguf.hpp"
#include "validate/gguf_model.hpp"
#include "validate/gguf_split.hpp"

#include <algorithm>
#include <vector>

using namespace modeld::fuzz;
using namespace modeld::validate;

int modeld::fuzz::fuzz_gguf_split(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const auto bytes = bytes_of(data, size).subspan(2);
  const std::size_t at =
      std::min<std::size_t>(data[0] | static_cast<std::size_t>(data[1]) << 8, bytes.size());
  const auto first = check_gguf(bytes.first(at), at, "m-00001-of-00002.gguf", Profile::compat);
  const auto second =
      check_gguf(bytes.subspan(at), bytes.size() - at, "m-00002-of-00002.gguf", Profile::compat);
  std::vector<SplitPart> parts;
  if (first.accepted()) parts.push_back({"m-00001-of-00002.gguf", &*first.value});
  if (second.accepted()) parts.push_back({"m-00002-of-00002.gguf", &*second.value});
  Report report;
  for (const auto& model : check_splits(parts, report)) {
    require(model.size() == 2, "a whole set of another size");
    require(report.accepted(), "a set that is whole and has errors");
    GgufModelView view(*model.front().header);
    view.add_tensors(*model.back().header);
    Report own;
    check_gguf_model(view, own);
  }
  return 0;
}
