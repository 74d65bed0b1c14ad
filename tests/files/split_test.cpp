// SPDX-License-Identifier: Apache-2.0
#include "tests/files/command.hpp"
#include "tests/files/model_inputs.hpp"
#include "tests/support/memory_files.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include <fstream>

using namespace modeld;
using namespace modeld::test;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

using Names = std::set<std::string>;

void put_model(const Workplace& place) {
  write_model(small_llama(), place / "in.gguf"); // ten tensors
}

} // namespace

TEST_CASE("modelctl split prints the parts that it makes, and merge gives the tensors back",
          "[files][split]") {
  const Workplace place;
  put_model(place);
  const auto parts = place.ctl({"split", "--split-max-tensors", "4", "in.gguf", "x"});
  INFO(parts.err);
  CHECK(parts.status == 0);
  CHECK(parts.out == "x-00001-of-00003.gguf\nx-00002-of-00003.gguf\nx-00003-of-00003.gguf\n");
  const auto whole = place.ctl({"merge", "x-00001-of-00003.gguf", "whole.gguf"});
  CHECK(whole.status == 0);
  CHECK(whole.out == "whole.gguf\n");
  CHECK(place.ctl({"quantize", "in.gguf", "a.gguf", "Q8_0"}).status == 0);
  CHECK(place.ctl({"quantize", "whole.gguf", "b.gguf", "Q8_0"}).status == 0);
  CHECK(place.sha256("a.gguf") == place.sha256("b.gguf"));
  const auto by_option = place.ctl({"split", "--merge", "x-00001-of-00003.gguf", "again.gguf"});
  CHECK(by_option.status == 0);
  CHECK(place.sha256("again.gguf") == place.sha256("whole.gguf"));
}

TEST_CASE("modelctl split and merge --dry-run write nothing", "[files][split]") {
  const Workplace place;
  put_model(place);
  const auto plan =
      place.ctl_json({"split", "--dry-run", "--split-max-tensors", "6", "in.gguf", "x"});
  const auto& files = plan.at("files").as_array();
  REQUIRE(files.size() == 2);
  CHECK(files[1].at("path").as_string() == "x-00002-of-00002.gguf");
  CHECK(files[1].at("tensors").to_number<int>() == 4);
  CHECK(place.names() == Names{"in.gguf"});
  REQUIRE(place.ctl({"split", "--split-max-tensors", "6", "in.gguf", "x"}).status == 0);
  CHECK(fs::file_size(place / "x-00002-of-00002.gguf") ==
        files[1].at("bytes").to_number<std::uint64_t>());
  CHECK(place.ctl({"merge", "--dry-run", "x-00001-of-00002.gguf", "whole.gguf"}).status == 0);
  CHECK_FALSE(fs::exists(place / "whole.gguf"));
}

TEST_CASE("modelctl merge --delete-splits removes the parts once the whole is there",
          "[files][split]") {
  const Workplace place;
  put_model(place);
  REQUIRE(place.ctl({"split", "--split-max-tensors", "4", "in.gguf", "x"}).status == 0);
  std::ofstream(place / "taken.gguf") << "mine";
  const Names before = place.names();
  CHECK(place.ctl({"merge", "--delete-splits", "x-00001-of-00003.gguf", "taken.gguf"}).status == 1);
  CHECK(place.names() == before);
  CHECK(place.ctl({"merge", "--delete-splits", "x-00001-of-00003.gguf", "whole.gguf"}).status == 0);
  CHECK(place.names() == Names{"in.gguf", "taken.gguf", "whole.gguf"});
}

TEST_CASE("modelctl merge does not touch a file that is there", "[files][split][B06]") {
  const Workplace place;
  put_model(place);
  REQUIRE(place.ctl({"split", "--split-max-tensors", "4", "in.gguf", "x"}).status == 0);
  std::ofstream(place / "out.gguf") << "mine";
  fs::create_symlink("x-00001-of-00003.gguf", place / "link.gguf");
  fs::create_symlink("nowhere.gguf", place / "dangling.gguf");
  for (const std::string out : {"out.gguf", "x-00001-of-00003.gguf", "x-00003-of-00003.gguf",
                                "link.gguf", "dangling.gguf"}) {
    const auto refused = place.ctl({"merge", "x-00001-of-00003.gguf", out});
    INFO(refused.err);
    CHECK(refused.status == 1);
    CHECK(error_code(refused) == "conflict");
  }
  CHECK(read_file(place / "out.gguf") == "mine");
  CHECK(fs::is_symlink(place / "dangling.gguf"));
}

TEST_CASE("modelctl split does not write over its input", "[files][split][B06]") {
  const Workplace place;
  write_model(small_llama(), place / "x-00001-of-00003.gguf");
  const std::string before = place.sha256("x-00001-of-00003.gguf");
  const auto refused =
      place.ctl({"split", "--split-max-tensors", "4", "x-00001-of-00003.gguf", "x"});
  CHECK(refused.status == 1);
  CHECK(error_code(refused) == "conflict");
  CHECK(place.sha256("x-00001-of-00003.gguf") == before);
  CHECK(place.names() == Names{"x-00001-of-00003.gguf"});
}

TEST_CASE("modelctl split and merge refuse wrong words and broken input, and leave nothing",
          "[files][split]") {
  const Workplace place;
  put_model(place);
  using Words = std::vector<std::string>;
  const auto refused = [&place](const Words& words, int status) {
    const auto finished = place.ctl(words);
    INFO(finished.err);
    CHECK(finished.status == status);
    CHECK_FALSE(error_code(finished).empty());
    CHECK(finished.out.empty());
  };
  for (const std::string size :
       {"100", "100K", "1.5G", "0M", "-1M", "M", "99999999999999999999G"}) {
    refused({"split", "--split-max-size", size, "in.gguf", "x"}, 2);
  }
  refused({"split", "--split-max-tensors", "0", "in.gguf", "x"}, 2);
  refused({"split", "--split-max-tensors", "-3", "in.gguf", "x"}, 2);
  refused({"split", "--split-max-tensors", "3", "--split-max-size", "1M", "in.gguf", "x"}, 2);
  refused({"split", "--merge", "--split", "in.gguf", "x"}, 2);
  refused({"split", "in.gguf"}, 2);
  refused({"split", "missing.gguf", "x"}, 3);
  refused({"split", "in.gguf", "missing/x"}, 3);
  refused({"merge", "missing.gguf", "x"}, 3);
  refused({"merge", "in.gguf", "x.gguf"}, 2); // no part of anything
  std::ofstream(place / "bad.gguf") << "GGUF";
  refused({"split", "bad.gguf", "x"}, 4);
  CHECK(place.names() == Names{"in.gguf", "bad.gguf"});
}

TEST_CASE("modelctl merge names a part that is missing, cut or not its turn (B08)",
          "[files][split][B08]") {
  const Workplace place;
  put_model(place);
  REQUIRE(place.ctl({"split", "--split-max-tensors", "4", "in.gguf", "x"}).status == 0);
  const fs::path third = place / "x-00003-of-00003.gguf";
  const std::string whole = read_file(third);
  const auto merged = [&place] {
    return place.ctl({"merge", "x-00001-of-00003.gguf", "whole.gguf"});
  };
  CHECK(place.ctl({"merge", "x-00002-of-00003.gguf", "whole.gguf"}).status == 4);
  std::ofstream(third, std::ios::binary) << whole.substr(0, whole.size() / 2);
  const auto cut = merged();
  CHECK(cut.status == 4);
  CHECK_THAT(cut.err, Contains("x-00003-of-00003.gguf"));
  fs::copy_file(place / "x-00002-of-00003.gguf", third, fs::copy_options::overwrite_existing);
  CHECK(merged().status == 4);
  fs::remove(third);
  const auto missing = merged();
  CHECK(missing.status == 3);
  CHECK_THAT(missing.err, Contains("x-00003-of-00003.gguf"));
  CHECK_FALSE(fs::exists(place / "whole.gguf"));
}

TEST_CASE("modelctl split leaves no part where one cannot be written (B07)",
          "[files][split][B07]") {
  const Workplace place;
  put_model(place);
  const auto refused = place.ctl({"split", "--split-max-tensors", "4", "in.gguf", "x"},
                                 {"prlimit", "--fsize=20000"});
  CHECK(refused.status == 6);
  CHECK(place.names() == Names{"in.gguf"});
}
