// SPDX-License-Identifier: Apache-2.0
#include "daemon/program_place.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace modeld::daemon {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string home() {
  std::string found = variable("HOME");
  if (!found.empty()) return found;
  const passwd* user = ::getpwuid(::getuid());
  return user == nullptr || user->pw_dir == nullptr ? std::string("/") : std::string(user->pw_dir);
}

std::string cache_home() {
  const std::string found = variable("XDG_CACHE_HOME");
  return found.empty() ? home() + "/.cache" : found;
}

// The first of the variables that is set, with what follows it.
std::string hub_cache() {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (auto found = variable(name); !found.empty()) return found;
  }
  if (auto found = variable("HF_HOME"); !found.empty()) return found + "/hub";
  return cache_home() + "/huggingface/hub";
}

std::string default_place(std::string_view program) {
  if (program == "huggingface") return hub_cache();
  if (program == "ollama") {
    const std::string found = variable("OLLAMA_MODELS");
    return found.empty() ? home() + "/.ollama/models" : found;
  }
  if (program == "lmstudio") return home() + "/.lmstudio/models";
  if (program == "llamacpp") {
    const std::string found = variable("LLAMA_CACHE");
    return found.empty() ? cache_home() + "/llama.cpp" : found;
  }
  return {};
}

std::string_view program_of(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> k_names[] = {
      {"huggingface", "huggingface"},
      {"hf", "huggingface"},
      {"hf-cache", "huggingface"},
      {"transformers", "huggingface"},
      {"ollama", "ollama"},
      {"lmstudio", "lmstudio"},
      {"lm-studio", "lmstudio"},
      {"llamacpp", "llamacpp"},
      {"llama.cpp", "llamacpp"},
      {"llama-cpp", "llamacpp"},
      {"models-dir", "models-dir"},
      {"folder", "folder"},
      {"plain", "folder"},
      {"dir", "folder"},
  };
  for (const auto& [known, program] : k_names) {
    if (known == name) return program;
  }
  return {};
}

} // namespace

std::string absolute_path(std::string_view path) {
  std::error_code ec;
  const auto whole = std::filesystem::absolute(path, ec);
  return ec ? std::string(path) : whole.lexically_normal().string();
}

Result<ProgramPlace> parse_place(std::string_view text) {
  const auto equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  const std::string_view program = program_of(name);
  if (program.empty()) {
    if (text.find('/') != std::string_view::npos) {
      return ProgramPlace{"folder", absolute_path(text)};
    }
    return fail(Errc::invalid_argument,
                fmt::format("reading '{}': no program '{}', known are huggingface, ollama, "
                            "lmstudio, llamacpp, models-dir and folder",
                            text, name),
                "PROGRAM=FOLDER chooses the folder, a path alone is a plain folder");
  }
  std::string root = equals == std::string_view::npos ? default_place(program)
                                                      : std::string(text.substr(equals + 1));
  if (root.empty()) {
    return fail(Errc::invalid_argument,
                fmt::format("reading '{}': it has no folder of its own", text),
                fmt::format("write {}=FOLDER", name));
  }
  return ProgramPlace{std::string(program), absolute_path(root)};
}

} // namespace modeld::daemon
