// SPDX-License-Identifier: Apache-2.0
#include "validate/check.hpp"

#include "validate/gguf.hpp"
#include "validate/safetensors.hpp"
#include "validate/sniff.hpp"

namespace modeld::validate {

Report check_safetensors_file(std::span<const std::byte> file, std::string_view path,
                              Profile profile, const Limits& limits) {
  Report report(std::string(path), profile);
  if (report_wrong_content(FileEnds::of(file), ContentKind::safetensors, report)) return report;
  return check_safetensors(file, file.size(), path, profile, limits).report;
}

Report check_gguf_file(std::span<const std::byte> file, std::string_view path, Profile profile,
                       const Limits& limits) {
  Report report(std::string(path), profile);
  if (report_wrong_content(FileEnds::of(file), ContentKind::gguf, report)) return report;
  return check_gguf(file, file.size(), path, profile, limits).report;
}

} // namespace modeld::validate
