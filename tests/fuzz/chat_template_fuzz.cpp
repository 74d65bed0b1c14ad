// SPDX-License-Identifier: Apache-2.0
#include "fuzz.hpp"

#include "validate/chat_template_scan.hpp"
#include "validate/escape.hpp"

using namespace modeld::fuzz;
using namespace modeld::validate;

int modeld::fuzz::fuzz_chat_template(const std::uint8_t* data, std::size_t size) {
  Report report("chat_template.jinja");
  scan_chat_template(text_of(data, size), "the chat template", Limits{}, report);
  for (const Finding& finding : report.findings())
    require(!text_traits(finding.message).control, "a message with control characters");
  return 0;
}
