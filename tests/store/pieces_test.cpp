// SPDX-License-Identifier: Apache-2.0
#include "store/pieces.hpp"

#include "store/collect.hpp"
#include "store/layout.hpp"
#include "store/quarantine.hpp"
#include "tests/store/fixture.hpp"

using namespace modeld;
using namespace modeld::test;
using namespace modeld::store;
namespace fs = std::filesystem;

namespace {

std::string big_text() {
  std::string text(3 * k_piece_bytes + 1000, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) {
    text[i] = static_cast<char>('a' + (i * 7 + i / 1000) % 26);
  }
  return text;
}

/// A store with one large blob, damaged at two places and found so by a scrub.
struct Subject {
  TempDir dir;
  std::unique_ptr<Store> store = open_store(dir / "root");
  std::string text = big_text();
  Snapshot snapshot = snapshot_of("org/Big", '1', {{"weights", text}});

  Subject() { REQUIRE(pull(*store, snapshot, {{"weights", text}})); }

  void damage(const std::function<void(std::string&)>& change) {
    const auto path = store->blob_path(sha(text));
    std::string bytes = text;
    change(bytes);
    fs::permissions(path, fs::perms::owner_all);
    write_file(path, bytes);
    REQUIRE(scrub(*store, {}, nullptr)->damaged.size() == 1);
  }
};

} // namespace

TEST_CASE("find_bad_bytes names the pieces that are wrong and no others", "[store][repair]") {
  Subject s;
  s.damage([](std::string& bytes) {
    bytes[k_piece_bytes + 5] = '!';
    bytes.back() = '!';
  });
  const auto bad = find_bad_bytes(*s.store, sha(s.text), nullptr);
  REQUIRE(bad);
  CHECK(*bad == std::vector<ByteSpan>{{k_piece_bytes, k_piece_bytes}, {3 * k_piece_bytes, 1000}});
}

TEST_CASE("find_bad_bytes takes a missing end for wrong, and joins what lies side by side",
          "[store][repair]") {
  Subject s;
  s.damage([](std::string& bytes) { bytes.resize(2 * k_piece_bytes + 1); });
  CHECK(*find_bad_bytes(*s.store, sha(s.text), nullptr) ==
        std::vector<ByteSpan>{{2 * k_piece_bytes, k_piece_bytes + 1000}});
}

TEST_CASE("find_bad_bytes means all where it cannot know", "[store][repair]") {
  Subject s;
  s.damage([](std::string& bytes) { bytes[0] = '!'; });
  SECTION("no list of pieces") {
    fs::remove(s.store->root() / layout::pieces(sha(s.text)));
  }
  SECTION("a list that is not one") {
    write_file(s.store->root() / layout::pieces(sha(s.text)), "modeld.pieces 1 4194304\nxyz\n");
  }
  SECTION("a list of other bytes") {
    const auto path = s.store->root() / layout::pieces(sha(s.text));
    std::string list = read_file(path);
    for (char& c : list) {
      if (c >= 'a' && c <= 'f' && &c > list.data() + 30) c = '0';
    }
    write_file(path, list);
  }
  SECTION("no bytes") {
    fs::remove(s.store->root() / layout::quarantined(sha(s.text)));
  }
  CHECK(*find_bad_bytes(*s.store, sha(s.text), nullptr) ==
        std::vector<ByteSpan>{{0, s.text.size()}});
}

TEST_CASE("Patch brings a blob back with the wrong bytes alone", "[store][repair]") {
  Subject s;
  s.damage([](std::string& bytes) { bytes[k_piece_bytes] = '!'; });
  auto patch = Patch::begin(*s.store, sha(s.text), {});
  REQUIRE(patch);
  SECTION("with the right ones") {
    REQUIRE((*patch)->write(k_piece_bytes, bytes_of(s.text).subspan(k_piece_bytes, k_piece_bytes)));
    REQUIRE((*patch)->commit());
    CHECK(*s.store->find_snapshot(RepoId{"org/Big"}, commit_of('1')));
    CHECK(read_file(s.store->snapshot_folder(RepoId{"org/Big"}, commit_of('1')) / "weights") ==
          s.text);
    check_invariants(*s.store);
  }
  SECTION("with other wrong ones it stays damaged") {
    CHECK_FALSE((*patch)->commit());
    CHECK_FALSE((*patch)->write(s.text.size(), bytes_of("x")));
    CHECK(list_damaged(*s.store)->size() == 1);
  }
  patch->reset();
  CHECK(fs::is_empty(s.store->root() / "tmp"));
}

TEST_CASE("a collection takes the list of pieces with its blob", "[store][gc][repair]") {
  Subject s;
  const auto path = s.store->root() / layout::pieces(sha(s.text));
  CHECK(fs::exists(path));
  REQUIRE(s.store->remove_snapshot(RepoId{"org/Big"}, commit_of('1')));
  CollectOptions options;
  options.grace = 0;
  REQUIRE(collect(*s.store, options, nullptr));
  CHECK_FALSE(fs::exists(s.store->blob_path(sha(s.text))));
  CHECK_FALSE(fs::exists(path));
}
