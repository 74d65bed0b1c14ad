// SPDX-License-Identifier: Apache-2.0
#include "fetch/environment.hpp"

#include "fetch/stored_tokens.hpp"
#include "tests/support/temp_dir.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <map>

using namespace modeld;
using namespace modeld::fetch;

namespace {

class FakeEnvironment : public Environment {
public:
  std::optional<std::string> variable(std::string_view name) const override {
    const auto it = variables.find(std::string(name));
    return it == variables.end() ? std::nullopt : std::optional(it->second);
  }
  Result<std::optional<File>> file(const std::string& path) const override {
    const auto it = files.find(path);
    return it == files.end() ? std::nullopt : std::optional(it->second);
  }
  std::int64_t now() const override { return 1'800'000'000; } // 2027-01-15
  std::map<std::string, std::string> variables{{"HOME", "/home/me"}};
  std::map<std::string, File> files;
};

std::string found(const FakeEnvironment& environment) {
  const auto token = find_token(environment);
  return token ? token->token.reveal() + " from " + token->source : token.error().message;
}

} // namespace

TEST_CASE("find_token looks in huggingface_hub's order", "[fetch][credentials]") {
  FakeEnvironment at;
  CHECK(found(at) == " from ");
  at.files["/home/me/.cache/huggingface/token"] = {"hf_home\n", 0600};
  CHECK(found(at) == "hf_home from /home/me/.cache/huggingface/token");
  at.files["/xdg/huggingface/token"] = {"hf_xdg", 0600};
  at.variables["XDG_CACHE_HOME"] = "/xdg";
  CHECK(found(at) == "hf_xdg from /xdg/huggingface/token");
  at.files["/home/me/hf/token"] = {"hf_hfhome", 0600};
  at.variables["HF_HOME"] = "~/hf";
  CHECK(found(at) == "hf_hfhome from /home/me/hf/token");
  at.files["/t"] = {"\r\n hf_path \r\n", 0600};
  at.variables["HF_TOKEN_PATH"] = "/t";
  CHECK(found(at) == "hf_path from /t");
  at.variables["HF_HUB_DISABLE_IMPLICIT_TOKEN"] = "yes";
  CHECK(found(at) == " from ");
  at.variables["HUGGING_FACE_HUB_TOKEN"] = "hf_old";
  CHECK(found(at) == "hf_old from HUGGING_FACE_HUB_TOKEN");
  at.variables["HF_TOKEN"] = " hf_env ";
  CHECK(found(at) == "hf_env from HF_TOKEN");
  at.variables["HF_TOKEN"] = "  ";
  CHECK(found(at) == "hf_old from HUGGING_FACE_HUB_TOKEN");
}

TEST_CASE("find_token refuses what cannot stand in a header, without repeating it",
          "[fetch][credentials][C04]") {
  FakeEnvironment at;
  for (const char* bad : {"hf_a\r\nX-Evil: 1", "hf a", "hf_\xC3\xA4"}) {
    at.variables["HF_TOKEN"] = bad;
    const auto token = find_token(at);
    REQUIRE_FALSE(token);
    CHECK(token.error().code == Errc::invalid_argument);
    CHECK(token.error().message.find(bad) == std::string::npos);
    CHECK(token.error().message.find("Evil") == std::string::npos);
  }
}

TEST_CASE("find_token prefers what login kept to other tools' files, if it is private",
          "[fetch][credentials][login]") {
  FakeEnvironment at;
  at.variables = {{"HOME", "/home/me"}};
  at.files["/home/me/.cache/huggingface/token"] = {"hf_other", 0644};
  at.files["/home/me/.config/modeld/token"] = {"hf_own\n", 0600};
  CHECK(login_file_of(at) == "/home/me/.config/modeld/token");
  CHECK(find_token(at)->token.reveal() == "hf_own");
  at.files["/home/me/.config/modeld/token"].mode = 0640;
  CHECK(find_token(at).error().code == Errc::denied);
  at.variables["XDG_CONFIG_HOME"] = "/cfg";
  CHECK(login_file_of(at) == "/cfg/modeld/token");
  CHECK(find_token(at)->token.reveal() == "hf_other");
  at.variables["HF_TOKEN"] = "hf_env";
  CHECK(find_token(at)->token.reveal() == "hf_env");
  at.variables = {};
  CHECK(login_file_of(at).empty());
}

TEST_CASE("read_private_token_file insists on mode 0600", "[fetch][credentials]") {
  const test::TempDir folder;
  const std::string path = (folder / "token").string();
  const ProcessEnvironment environment;
  CHECK(read_private_token_file(environment, path).error().code == Errc::not_found);
  std::ofstream(path) << "hf_service\n";
  std::filesystem::permissions(path, std::filesystem::perms(0640));
  const auto open = read_private_token_file(environment, path);
  REQUIRE_FALSE(open);
  CHECK(open.error().code == Errc::denied);
  CHECK(open.error().message.find("0640") != std::string::npos);
  CHECK(open.error().message.find("hf_service") == std::string::npos);
  std::filesystem::permissions(path, std::filesystem::perms(0600));
  CHECK(read_private_token_file(environment, path)->reveal() == "hf_service");
  std::ofstream(path) << std::string(100'000, 'x');
  CHECK(read_private_token_file(environment, path).error().code == Errc::malformed);
  CHECK_FALSE(read_private_token_file(environment, folder.path().string()));
}

TEST_CASE("endpoint_of and is_offline read the variables as huggingface_hub does",
          "[fetch][environment][pitfall-18][pitfall-30]") {
  FakeEnvironment at;
  CHECK(endpoint_of(at) == "https://huggingface.co");
  at.variables["HF_ENDPOINT"] = "http://h:8080/hf//";
  CHECK(endpoint_of(at) == "http://h:8080/hf");
  CHECK_FALSE(is_offline(at));
  for (const char* on : {"1", "on", "Yes", "TRUE"}) {
    at.variables["HF_HUB_OFFLINE"] = on;
    CHECK(is_offline(at));
  }
  at.variables["HF_HUB_OFFLINE"] = "0";
  CHECK_FALSE(is_offline(at));
  at.variables["TRANSFORMERS_OFFLINE"] = "1";
  CHECK(is_offline(at));
  CHECK(hub_cache_of(at) == "/home/me/.cache/huggingface/hub");
  at.variables["HF_HUB_CACHE"] = "/c";
  CHECK(hub_cache_of(at) == "/c");
}

TEST_CASE("find_stored_token reads what huggingface_hub keeps by name", "[fetch][credentials]") {
  FakeEnvironment at;
  CHECK(read_stored_tokens(at)->empty());
  CHECK(find_stored_token(at, "work").error().code == Errc::not_found);
  at.files["/home/me/.cache/huggingface/stored_tokens"] = {
      "[alt \xC3\xBC 1.5]\nhf_token = hf_one\n\n"
      "[work]\nhf_token = hf_two%x\n\n"
      "[old]\nhf_token = hf_three\nrefresh_token = r\nexpires_at = 1700000000\n\n"
      "[browser]\nhf_token = hf_four\nrefresh_token = r\nexpires_at = 1900000000\n\n"
      "[empty]\nother = 1",
      0600};
  CHECK(read_stored_tokens(at)->size() == 4);
  CHECK(find_stored_token(at, "work")->token.reveal() == "hf_two%x");
  CHECK(find_stored_token(at, "alt \xC3\xBC 1.5")->token.reveal() == "hf_one");
  CHECK(find_stored_token(at, "browser")->expires == 1'900'000'000);
  const auto old = find_stored_token(at, "old");
  REQUIRE_FALSE(old);
  CHECK(old.error().code == Errc::denied);
  CHECK(old.error().message.find("2023-11-14 22:13:20 UTC") != std::string::npos);
  const auto none = find_stored_token(at, "wrok");
  REQUIRE_FALSE(none);
  CHECK(none.error().code == Errc::not_found);
  CHECK(none.error().message.find("'work'") != std::string::npos);
  CHECK(none.error().message.find("hf_") == std::string::npos);

  at.variables["HF_TOKEN_PATH"] = "/etc/hf/token"; // the other file is beside it
  at.files["/etc/hf/stored_tokens"] = {"[work]\nhf_token = hf_five\n", 0600};
  CHECK(find_stored_token(at, "work")->token.reveal() == "hf_five");
}

TEST_CASE("a file of stored tokens that is none tells its line, and no token",
          "[fetch][credentials][C04]") {
  FakeEnvironment at;
  for (const char* bad : {"[a]\nhf_token hf_secret\n", "[a\nhf_token = hf_secret\n",
                          "[a]\nhf_token = hf_secret\n[a]\nhf_token = hf_secret\n",
                          "[a]\nhf_token = hf_secret with words\n"}) {
    INFO(bad);
    at.files["/home/me/.cache/huggingface/stored_tokens"] = {bad, 0600};
    const auto read = read_stored_tokens(at);
    REQUIRE_FALSE(read);
    CHECK(read.error().message.find("stored_tokens") != std::string::npos);
    CHECK(read.error().message.find("hf_secret") == std::string::npos);
    // It is not needed for the token that is used.
    at.files["/home/me/.cache/huggingface/token"] = {"hf_used\n", 0600};
    CHECK(found(at) == "hf_used from /home/me/.cache/huggingface/token");
  }
}

TEST_CASE("find_token refuses a token of a login by browser that has expired",
          "[fetch][credentials]") {
  FakeEnvironment at;
  at.files["/home/me/.cache/huggingface/token"] = {"hf_browser\n", 0600};
  const auto stored = [&](const std::string& time) {
    at.files["/home/me/.cache/huggingface/stored_tokens"] = {
        "[b]\nhf_token = hf_browser\nexpires_at = " + time + "\n", 0600};
  };
  stored("1800000001");
  CHECK(found(at) == "hf_browser from /home/me/.cache/huggingface/token");
  stored("soon"); // nothing is known
  CHECK(found(at) == "hf_browser from /home/me/.cache/huggingface/token");
  stored("1800000000");
  const auto expired = find_token(at);
  REQUIRE_FALSE(expired);
  CHECK(expired.error().code == Errc::denied);
  CHECK(expired.error().hint.find("hf auth") != std::string::npos);
  at.variables["HF_TOKEN"] = "hf_env"; // another one is not touched by it
  CHECK(found(at) == "hf_env from HF_TOKEN");
}
