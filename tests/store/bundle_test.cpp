// SPDX-License-Identifier: Apache-2.0
#include "store/bundle.hpp"

#include "store/tar.hpp"
#include "tests/store/fixture.hpp"

#include <cstdlib>
#include <cstring>

using namespace modeld;
using namespace modeld::test;
using namespace modeld::store;
namespace fs = std::filesystem;

namespace {

class StringSink final : public ByteSink {
public:
  Result<void> write(std::span<const std::byte> bytes) override {
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return {};
  }
  std::string text;
};

auto reader_of(const std::string& text) {
  return [&text, at = std::size_t{0}](std::span<std::byte> into) mutable -> Result<void> {
    if (into.size() > text.size() - at) return fail(Errc::malformed, "the end");
    std::memcpy(into.data(), text.data() + at, into.size());
    at += into.size();
    return {};
  };
}

Files files_of_test() {
  return {{"config.json", "{}"}, {"empty", ""}, {"sub/" + std::string(120, 'n') + "/w", "wwww"}};
}

/// A store with a snapshot and a variant, and their bundle.
class Subject {
public:
  Subject() : store(open_store(dir / "root")) {
    const auto files = files_of_test();
    content.snapshot = snapshot_of("org/Name", '1', files);
    REQUIRE(pull(*store, content.snapshot, files));
    REQUIRE(ingest(*store, "gguf"));
    content.variants = {variant_of(content.snapshot, "Q4_K_M", "gguf")};
    REQUIRE(store->publish_variant(content.variants[0]));
    REQUIRE(export_bundle(*store, content, sink, nullptr));
  }
  TempDir dir;
  std::unique_ptr<Store> store;
  BundleContent content;
  StringSink sink;
};

} // namespace

TEST_CASE("export_bundle writes what import_bundle reads, without a network", "[store][bundle]") {
  Subject s;
  CHECK(s.sink.text.size() == bundle_bytes(s.content));
  const auto other = open_store(s.dir / "other");
  const auto content = import_bundle(*other, reader_of(s.sink.text), nullptr);
  if (!content) FAIL(content.error().message);
  CHECK(content->snapshot == s.content.snapshot);
  CHECK(content->variants == s.content.variants);
  check_invariants(*other);
  CHECK(*other->find_variant(s.content.variants[0].key));
  StringSink again;
  REQUIRE(export_bundle(*other, *content, again, nullptr));
  CHECK(again.text == s.sink.text);
}

TEST_CASE("tar lists a bundle and sha256sum proves it", "[store][bundle]") {
  Subject s;
  write_file(s.dir / "bundle.tar", s.sink.text);
  fs::create_directory(s.dir / "out");
  const std::string run = "cd '" + (s.dir / "out").string() +
                          "' && tar tf ../bundle.tar > ../list && tar xf ../bundle.tar && "
                          "sha256sum --quiet -c SHA256SUMS";
  CHECK(std::system(run.c_str()) == 0);
  const auto list = read_file(s.dir / "list");
  CHECK(list.starts_with("SHA256SUMS\nmodeld-snapshot.json\n"));
  CHECK(list.find(std::string(120, 'n')) != std::string::npos);
}

TEST_CASE("import_bundle refuses a bundle cut at any block", "[store][bundle]") {
  Subject s;
  const auto other = open_store(s.dir / "other");
  for (std::size_t cut = 0; cut + 1024 < s.sink.text.size(); cut += 256) {
    INFO(cut);
    CHECK_FALSE(import_bundle(*other, reader_of(s.sink.text.substr(0, cut)), nullptr));
    CHECK(other->list_snapshots()->empty());
  }
}

TEST_CASE("import_bundle refuses a bundle with a flipped byte in a file", "[store][bundle]") {
  Subject s;
  const auto other = open_store(s.dir / "other");
  auto text = s.sink.text;
  text[text.rfind("wwww")] = 'W';
  const auto content = import_bundle(*other, reader_of(text), nullptr);
  REQUIRE_FALSE(content);
  CHECK(content.error().code == Errc::digest_mismatch);
  CHECK(other->list_snapshots()->empty());
}

TEST_CASE("import_bundle refuses files that no manifest names", "[store][bundle]") {
  Subject s;
  const auto other = open_store(s.dir / "other");
  auto text = s.sink.text.substr(0, s.sink.text.size() - tar_end().size());
  text += tar_header({"files/extra", 512}) + std::string(512, 'x') + tar_end();
  CHECK(import_bundle(*other, reader_of(text), nullptr).error().code == Errc::malformed);
}

TEST_CASE("TarReader refuses what is not a plain file with a safe name", "[store][bundle][C13]") {
  const auto next_of = [](const std::string& text) {
    const auto read = reader_of(text);
    TarReader tar(read);
    return tar.next();
  };
  for (const char* path : {"../evil", "/etc/passwd", "a/../../b"}) {
    INFO(path);
    CHECK(next_of(tar_header({path, 0}) + tar_end()).error().code == Errc::invalid_argument);
  }
  std::string link = tar_header({"link", 0});
  link[156] = '2';
  link.replace(148, 8, "        ");
  unsigned sum = 0;
  for (const char c : link) {
    sum += static_cast<unsigned char>(c);
  }
  char digits[8];
  std::snprintf(digits, sizeof digits, "%06o", sum);
  link.replace(148, 7, std::string(digits, 7));
  CHECK(next_of(link + tar_end()).error().code == Errc::unsupported);
  CHECK(next_of(std::string(512, 'x')).error().code == Errc::malformed);
  CHECK_FALSE(*next_of(tar_end()));
}

TEST_CASE("tar_header carries long paths and large sizes", "[store][bundle]") {
  const TarEntry large{std::string(200, 'a') + "/b", 1ULL << 40};
  const std::string text = tar_header(large);
  const auto read = reader_of(text);
  TarReader tar(read);
  const auto entry = tar.next();
  REQUIRE(entry);
  REQUIRE(*entry);
  CHECK((*entry)->path == large.path);
  CHECK((*entry)->size == large.size);
}
