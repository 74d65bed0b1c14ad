// SPDX-License-Identifier: Apache-2.0
#include "store/folder_files.hpp"

#include "tests/store/fixture.hpp"

#include <sys/stat.h>

using namespace modeld;
using namespace modeld::test;
using store::open_folder;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> paths(const FileSet& files) {
  std::vector<std::string> all;
  for (const auto& entry : files.entries()) {
    all.push_back(entry.path);
  }
  return all;
}

} // namespace

TEST_CASE("open_folder lists files sorted bytewise, hidden ones left out", "[store][folder]") {
  TempDir dir;
  for (const char* path : {"b", "a/z", "a.b", "B", ".git/config", "\xC3\xA9"}) {
    write_file(dir / "Model" / path, path);
  }
  const auto files = open_folder(dir / "Model/");
  REQUIRE(files);
  CHECK((*files)->name() == "Model");
  CHECK(paths(**files) == std::vector<std::string>{"B", "a.b", "a/z", "b", "\xC3\xA9"});
  CHECK((*files)->bytes("a/z")->size() == 3);
  CHECK((*files)->contains("b"));
}

TEST_CASE("open_folder gives empty files an empty span", "[store][folder]") {
  TempDir dir;
  write_file(dir / "m/empty", "");
  CHECK((*open_folder(dir / "m"))->bytes("empty")->empty());
}

TEST_CASE("open_folder refuses links that leave the folder", "[store][folder][C13]") {
  TempDir dir;
  write_file(dir / "secret", "s");
  write_file(dir / "m/a", "a");
  fs::create_symlink("a", dir / "m/inside");
  CHECK(paths(**open_folder(dir / "m")).size() == 2);
  fs::create_symlink("../secret", dir / "m/outside");
  const auto files = open_folder(dir / "m");
  REQUIRE_FALSE(files);
  CHECK(files.error().code == Errc::denied);
  CHECK(files.error().message.find("secret") != std::string::npos);
}

TEST_CASE("open_folder names a dead link", "[store][folder]") {
  TempDir dir;
  fs::create_directory(dir / "m");
  fs::create_symlink("nowhere", dir / "m/dead");
  const auto files = open_folder(dir / "m");
  REQUIRE_FALSE(files);
  CHECK(files.error().message.find("dead") != std::string::npos);
}

TEST_CASE("open_folder follows a snapshot of a Hugging Face cache into its blobs",
          "[store][folder]") {
  TempDir dir;
  const fs::path repo = dir / "models--org--Name";
  write_file(repo / "blobs/abc", "weights");
  fs::create_directories(repo / "snapshots/1234");
  fs::create_symlink("../../blobs/abc", repo / "snapshots/1234/model.safetensors");
  const auto files = open_folder(repo / "snapshots/1234");
  REQUIRE(files);
  CHECK((*files)->name() == "Name");
  CHECK((*files)->bytes("model.safetensors")->size() == 7);
}

TEST_CASE("open_folder does not walk in circles", "[store][folder]") {
  TempDir dir;
  write_file(dir / "m/a", "a");
  fs::create_directory_symlink(".", dir / "m/loop");
  CHECK(paths(**open_folder(dir / "m")) == std::vector<std::string>{"a"});
}

TEST_CASE("open_folder lists what is no file of the set for one who wants the rest",
          "[store][folder][GN-01]") {
  TempDir dir;
  write_file(dir / "secret", "s");
  write_file(dir / "m/a", "a");
  fs::create_symlink("../secret", dir / "m/outside");
  fs::create_symlink("nowhere", dir / "m/dead");
  fs::create_symlink("circle", dir / "m/circle");
  REQUIRE(::mkfifo((dir / "m/pipe").c_str(), 0600) == 0);
  std::vector<store::LeftOut> left_out;
  const auto files = open_folder(dir / "m", left_out);
  REQUIRE(files);
  CHECK(paths(**files) == std::vector<std::string>{"a"});
  std::vector<std::string> names;
  for (const store::LeftOut& one : left_out) {
    names.push_back(one.path);
    CHECK_FALSE(one.why.message.empty());
  }
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{"circle", "dead", "outside", "pipe"});
}

TEST_CASE("open_folder says when there is no such folder or it is a file", "[store][folder]") {
  TempDir dir;
  write_file(dir / "file", "x");
  CHECK(open_folder(dir / "none").error().code == Errc::not_found);
  CHECK(open_folder(dir / "file").error().code == Errc::invalid_argument);
}

TEST_CASE("FileSet::bytes notices a file that changed its size", "[store][folder]") {
  TempDir dir;
  write_file(dir / "m/a", "a");
  const auto files = *open_folder(dir / "m");
  write_file(dir / "m/a", "longer");
  CHECK(files->bytes("a").error().code == Errc::io);
}
