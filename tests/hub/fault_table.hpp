// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/hub/fault_script.hpp"

#include <map>
#include <string_view>

namespace modeld::test {

/// The tag of a file that stands in the place of the right one.
inline constexpr std::string_view k_other_etag = "\"another-file\"";

/// One kind of misbehaviour: what it means, and what it makes of an honest answer. Null where the
/// script itself has to ask for another answer.
struct Fault {
  std::string_view meaning;
  void (*apply)(const FaultRule&, const Request&, SendPlan&);
};

const std::map<std::string_view, Fault>& faults();

/// An answer without anything of the file.
void answer_status(const FaultRule& rule, SendPlan& plan);
/// Another file of that length, with a tag of its own.
void answer_replaced(const FaultRule& rule, const Request& request, SendPlan& plan);

} // namespace modeld::test
