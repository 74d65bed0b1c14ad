// SPDX-License-Identifier: Apache-2.0
#include "validate/check.hpp"

#include "validate/gguf.hpp"
#include "validate/pickle.hpp"
#include "validate/safetensors.hpp"
#include "validate/sniff.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace modeld::validate {

void warn_if_also_pickle(std::span<const std::byte> file, Report& report) {
  constexpr std::size_t k_walk = 4096;
  if (const auto acts = pickle_opcode_that_acts(file.first(std::min(file.size(), k_walk)))) {
    report.warn("PK-01", 0,
                fmt::format("the file also reads as a Python pickle with the opcode {}; never "
                            "unpickle it",
                            *acts));
  }
}

Report check_safetensors_file(std::span<const std::byte> file, std::string_view path,
                              Profile profile, const Limits& limits) {
  Report report(std::string(path), profile);
  if (report_wrong_content(FileEnds::of(file), ContentKind::safetensors, report)) return report;
  report = check_safetensors(file, file.size(), path, profile, limits).report;
  warn_if_also_pickle(file, report);
  return report;
}

Report check_gguf_file(std::span<const std::byte> file, std::string_view path, Profile profile,
                       const Limits& limits) {
  Report report(std::string(path), profile);
  if (report_wrong_content(FileEnds::of(file), ContentKind::gguf, report)) return report;
  return check_gguf(file, file.size(), path, profile, limits).report;
}

} // namespace modeld::validate
