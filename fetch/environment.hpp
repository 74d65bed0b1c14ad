// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fetch/token.hpp"
#include "schema/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace modeld::fetch {

/// Where settings of Hub tools come from. Tests give their own.
class Environment {
public:
  Environment() = default;
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  virtual ~Environment() = default;

  virtual std::optional<std::string> variable(std::string_view name) const = 0;
  struct File {
    std::string text;
    std::uint32_t mode = 0; ///< permission bits
  };
  /// A small file; nothing where there is none; an error where it cannot be read.
  virtual Result<std::optional<File>> file(const std::string& path) const = 0;
  /// Unix seconds.
  virtual std::int64_t now() const;
};

/// The process's own environment and disk.
class ProcessEnvironment : public Environment {
public:
  std::optional<std::string> variable(std::string_view name) const override;
  Result<std::optional<File>> file(const std::string& path) const override;
};

/// A token and where it was found ("HF_TOKEN", or the file's path); both empty for none.
struct FoundToken {
  Token token;
  std::string source;
};

/// Where `modelctl login` keeps this user's token: $XDG_CONFIG_HOME/modeld/token, else
/// ~/.config/modeld/token.
std::string login_file_of(const Environment& environment);

/// huggingface_hub's token file: HF_TOKEN_PATH, else $HF_HOME/token, where HF_HOME is
/// $XDG_CACHE_HOME/huggingface, else ~/.cache/huggingface.
std::string token_file_of(const Environment& environment);

/// The user's own token: HF_TOKEN, HUGGING_FACE_HUB_TOKEN, that of `modelctl login` (denied where
/// others may read it), then huggingface_hub's file (hub-protocol.md section 3), denied where that
/// program knows that it has expired. HF_HUB_DISABLE_IMPLICIT_TOKEN leaves the files out.
Result<FoundToken> find_token(const Environment& environment);

/// A token file that a service reads: denied where anyone but its owner may read it, not_found
/// where it is missing.
Result<Token> read_private_token_file(const Environment& environment, const std::string& path);

/// HF_ENDPOINT without '/' at the end, or "https://huggingface.co".
std::string endpoint_of(const Environment& environment);
/// HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE is 1, ON, YES or TRUE, in any case.
bool is_offline(const Environment& environment);
/// The folder of huggingface_hub's cache: HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, $HF_HOME/hub.
std::string hub_cache_of(const Environment& environment);

} // namespace modeld::fetch
