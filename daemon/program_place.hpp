// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"

#include <string>
#include <string_view>

namespace modeld::daemon {

/// A program that models are shown to or taken from, and its folder.
struct ProgramPlace {
  std::string program; ///< "huggingface", "ollama", "lmstudio", "llamacpp", "models-dir", "folder"
  std::string root;    ///< absolute
};

/// "ollama", "ollama=/srv/ollama", or a path alone, which is a plain folder. Other names of the
/// same programs (hf, lm-studio, llama.cpp, plain) are understood. Without a path the folder is
/// where the program itself looks, by its environment variables (hub-protocol.md section 4) and
/// defaults; invalid_argument for an unknown name, or one that has no such folder.
Result<ProgramPlace> parse_place(std::string_view text);

/// Relative to the current folder, made absolute; "~" stays what it is.
std::string absolute_path(std::string_view path);

} // namespace modeld::daemon
