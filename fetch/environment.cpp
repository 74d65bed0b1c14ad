// SPDX-License-Identifier: Apache-2.0
#include "fetch/environment.hpp"

#include "fetch/stored_tokens.hpp"

#include <fmt/format.h>

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>

namespace modeld::fetch {
namespace {

constexpr std::size_t k_max_file = 64 << 10;

struct CloseFile {
  void operator()(std::FILE* file) const { static_cast<void>(std::fclose(file)); } // read only
};

std::string value_of(const Environment& environment, std::string_view name) {
  return environment.variable(name).value_or("");
}

/// "~" alone or in front of a '/' is the home folder.
std::string expand_home(const Environment& environment, std::string path) {
  if (path == "~" || path.starts_with("~/")) path = value_of(environment, "HOME") + path.substr(1);
  return path;
}

std::string hf_home(const Environment& environment) {
  if (auto home = value_of(environment, "HF_HOME"); !home.empty())
    return expand_home(environment, home);
  if (auto cache = value_of(environment, "XDG_CACHE_HOME"); !cache.empty()) {
    return expand_home(environment, cache) + "/huggingface";
  }
  return value_of(environment, "HOME") + "/.cache/huggingface";
}

bool is_on(const Environment& environment, std::string_view name) {
  std::string text = value_of(environment, name);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return text == "1" || text == "ON" || text == "YES" || text == "TRUE";
}

} // namespace

std::int64_t Environment::now() const {
  return std::time(nullptr);
}

std::optional<std::string> ProcessEnvironment::variable(std::string_view name) const {
  const char* value = std::getenv(std::string(name).c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

Result<std::optional<Environment::File>> ProcessEnvironment::file(const std::string& path) const {
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rbe"));
  if (!file) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    return fail(from_errno(errno, fmt::format("opening '{}'", path)));
  }
  struct stat status {};
  if (fstat(fileno(file.get()), &status) != 0) {
    return fail(from_errno(errno, fmt::format("reading '{}'", path)));
  }
  if (!S_ISREG(status.st_mode))
    return fail(Errc::io, fmt::format("reading '{}': not a file", path));
  std::string text(k_max_file + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()) != 0)
    return fail(from_errno(errno, fmt::format("reading '{}'", path)));
  if (text.size() > k_max_file) {
    return fail(Errc::malformed,
                fmt::format("reading '{}': longer than {} bytes", path, k_max_file));
  }
  return File{std::move(text), static_cast<std::uint32_t>(status.st_mode & 07777)};
}

std::string login_file_of(const Environment& environment) {
  std::string folder = value_of(environment, "XDG_CONFIG_HOME");
  const std::string home = value_of(environment, "HOME");
  if (folder.empty() && home.empty()) return {};
  if (folder.empty()) folder = home + "/.config";
  return expand_home(environment, folder) + "/modeld/token";
}

std::string token_file_of(const Environment& environment) {
  const std::string path = expand_home(environment, value_of(environment, "HF_TOKEN_PATH"));
  return path.empty() ? hf_home(environment) + "/token" : path;
}

Result<FoundToken> find_token(const Environment& environment) {
  for (const std::string_view name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
    auto token = Token::parse(value_of(environment, name));
    if (!token) return fail(std::move(token).error().context(name));
    if (!token->empty()) return FoundToken{std::move(*token), std::string(name)};
  }
  if (is_on(environment, "HF_HUB_DISABLE_IMPLICIT_TOKEN")) return FoundToken{};
  if (const std::string own = login_file_of(environment); !own.empty()) {
    auto token = read_private_token_file(environment, own);
    if (!token && token.error().code != Errc::not_found) return fail(std::move(token).error());
    if (token && !token->empty()) return FoundToken{std::move(*token), own};
  }
  const std::string path = token_file_of(environment);
  MODELD_ASSIGN(const auto file, environment.file(path));
  if (!file) return FoundToken{};
  auto token = Token::parse(file->text);
  if (!token) return fail(std::move(token).error().context(fmt::format("'{}'", path)));
  if (token->empty()) return FoundToken{};
  MODELD_TRY(check_expiry(environment, *token));
  return FoundToken{std::move(*token), path};
}

Result<Token> read_private_token_file(const Environment& environment, const std::string& path) {
  MODELD_ASSIGN(const auto file, environment.file(path));
  if (!file)
    return fail(Errc::not_found, fmt::format("reading token file '{}': it is not there", path));
  if ((file->mode & 077) != 0) {
    return fail(Errc::denied,
                fmt::format("reading token file '{}': its mode is {:04o}, allowed is 0600", path,
                            file->mode),
                fmt::format("chmod 600 {}", path));
  }
  auto token = Token::parse(file->text);
  if (!token) return fail(std::move(token).error().context(fmt::format("'{}'", path)));
  return token;
}

std::string endpoint_of(const Environment& environment) {
  std::string endpoint = value_of(environment, "HF_ENDPOINT");
  while (endpoint.ends_with('/')) {
    endpoint.pop_back();
  }
  return endpoint.empty() ? "https://huggingface.co" : endpoint;
}

bool is_offline(const Environment& environment) {
  return is_on(environment, "HF_HUB_OFFLINE") || is_on(environment, "TRANSFORMERS_OFFLINE");
}

std::string hub_cache_of(const Environment& environment) {
  for (const std::string_view name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (auto path = value_of(environment, name); !path.empty())
      return expand_home(environment, path);
  }
  return hf_home(environment) + "/hub";
}

} // namespace modeld::fetch
