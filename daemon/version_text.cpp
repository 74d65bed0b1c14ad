// SPDX-License-Identifier: Apache-2.0
#include "daemon/version_text.hpp"

#include "quantize/kernels/target.hpp"
#include "schema/version.hpp"

#include <fmt/format.h>

namespace modeld::daemon {

std::string version_text(std::string_view program) {
  return fmt::format("{} {}\nconverter {} (reference: {})\nkernels {}", program, k_version,
                     k_converter_version, k_reference, kernel_text());
}

std::string kernel_text() {
  const auto& kernel = quantize::kernel_in_use();
  return kernel ? std::string(quantize::kernel_name(*kernel)) : kernel.error().message;
}

} // namespace modeld::daemon
