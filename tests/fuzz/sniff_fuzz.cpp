// SPDX-License-Identifier: Apache-2.0
#include "fuzz.hpp"

#include "validate/pickle.hpp"
#include "validate/sniff.hpp"

using namespace modeld::fuzz;
using namespace modeld::validate;

int modeld::fuzz::fuzz_sniff(const std::uint8_t* data, std::size_t size) {
  const FileEnds ends = FileEnds::of(bytes_of(data, size));
  const ContentKind kind = sniff(ends);
  require(!describe(kind).empty(), "a kind without a name");
  for (const ContentKind expected :
       {ContentKind::safetensors, ContentKind::gguf, ContentKind::json}) {
    Report report("f");
    const bool wrong = report_wrong_content(ends, expected, report);
    require(wrong == !report.accepted(), "a verdict without a finding");
  }
  pickle_opcode_that_acts(ends.head);
  return 0;
}
