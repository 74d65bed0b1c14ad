// SPDX-License-Identifier: Apache-2.0
// What libFuzzer calls; MODELD_FUZZ_TARGET is one of the functions of fuzz.hpp.
#include "fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return modeld::fuzz::MODELD_FUZZ_TARGET(data, size);
}
