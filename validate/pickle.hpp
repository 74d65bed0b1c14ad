// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace modeld::validate {

/// Whether bytes read as a pickle of any protocol that does something: walks opcodes by a table of
/// their lengths, without running any, until STOP. Gives the name of the first opcode that calls or
/// imports ("GLOBAL os.system" becomes "GLOBAL"); nothing where the bytes are no such pickle. The
/// span may be the start of a longer file; a walk that leaves it finds nothing.
std::optional<std::string> pickle_opcode_that_acts(std::span<const std::byte> bytes);

} // namespace modeld::validate
