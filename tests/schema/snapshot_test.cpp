// SPDX-License-Identifier: Apache-2.0
#include "schema/snapshot.hpp"

#include <catch2/catch.hpp>

using namespace modeld;

namespace {

Snapshot example() {
  Snapshot snapshot;
  snapshot.repo = *RepoId::parse("org/name");
  snapshot.commit = *GitOid::parse(std::string(40, 'c'));
  snapshot.files = {
      {"a \"quoted\".json", 3, *GitOid::parse(std::string(40, '1')),
       *Sha256Digest::parse(std::string(64, '2'))},
      {"b/model.safetensors", 1ULL << 40, *GitOid::parse(std::string(40, '3')),
       *Sha256Digest::parse(std::string(64, '4'))},
  };
  return snapshot;
}

} // namespace

TEST_CASE("Snapshot::from_json reads what to_json writes", "[schema][snapshot]") {
  const Snapshot snapshot = example();
  const auto read = Snapshot::from_json(snapshot.to_json());
  REQUIRE(read);
  CHECK(*read == snapshot);
  CHECK(read->bytes() == (1ULL << 40) + 3);
  CHECK(read->find("b/model.safetensors") != nullptr);
  CHECK(read->find("b") == nullptr);
}

TEST_CASE("Snapshot::from_json refuses a manifest cut at any byte", "[schema][snapshot]") {
  const std::string text = example().to_json();
  for (std::size_t n = 0; n + 1 < text.size(); ++n) {
    INFO(n);
    CHECK_FALSE(Snapshot::from_json(text.substr(0, n)));
  }
}

TEST_CASE("Snapshot::from_json refuses names out of order, twice or unsafe", "[schema][snapshot]") {
  const auto with_paths = [](std::string first, std::string second) {
    Snapshot snapshot = example();
    snapshot.files[0].path = std::move(first);
    snapshot.files[1].path = std::move(second);
    return Snapshot::from_json(snapshot.to_json());
  };
  CHECK(with_paths("a", "b"));
  CHECK_FALSE(with_paths("b", "a"));
  CHECK_FALSE(with_paths("a", "a"));
  CHECK_FALSE(with_paths("../a", "b"));
}

TEST_CASE("Snapshot::from_json reads a manifest with absent files", "[schema][snapshot]") {
  Snapshot snapshot = example();
  CHECK(snapshot.to_json().find("\"version\":1") != std::string::npos);
  snapshot.absent = {
      {"a.bin", 7, *GitOid::parse(std::string(40, '5')), std::nullopt},
      {"b/a", 8, *GitOid::parse(std::string(40, '6')), *Sha256Digest::parse(std::string(64, '7'))}};
  CHECK(snapshot.to_json().find("\"version\":2") != std::string::npos);
  const auto read = Snapshot::from_json(snapshot.to_json());
  REQUIRE(read);
  CHECK(*read == snapshot);
  CHECK_FALSE(read->complete());
  CHECK(read->find("a.bin") == nullptr);
  CHECK(read->find_absent("a.bin") != nullptr);
  const auto all = read->listing();
  REQUIRE(all.size() == 4);
  CHECK(all[0].path == "a \"quoted\".json");
  CHECK(all[3].path == "b/model.safetensors");
  const std::string text = snapshot.to_json();
  for (std::size_t n = 0; n + 1 < text.size(); ++n) {
    INFO(n);
    CHECK_FALSE(Snapshot::from_json(text.substr(0, n)));
  }
  snapshot.absent[0].path = "../a";
  CHECK_FALSE(Snapshot::from_json(snapshot.to_json()));
  snapshot.absent[0].path = "b/model.safetensors";
  snapshot.absent.pop_back();
  CHECK_FALSE(Snapshot::from_json(snapshot.to_json())); // here and absent
}

TEST_CASE("Snapshot::merged_with joins what two pulls of a commit took", "[schema][snapshot]") {
  const Snapshot whole = example();
  const auto without = [&whole](std::size_t index) {
    Snapshot part = whole;
    const SnapshotFile& file = whole.files[index];
    // As the Hub lists it: the SHA-256 of large files only.
    part.absent = {{file.path, file.size, file.git_oid, std::nullopt}};
    part.files.erase(part.files.begin() + static_cast<std::ptrdiff_t>(index));
    return part;
  };
  CHECK(*without(0).merged_with(without(1)) == whole);
  CHECK(*without(0).merged_with(without(0)) == without(0));
  CHECK(*without(1).merged_with(whole) == whole);
  CHECK(*whole.merged_with(without(1)) == whole);
  Snapshot other = without(0);
  other.absent[0].size += 1;
  CHECK(whole.merged_with(other).error().code == Errc::conflict);
  other = without(0);
  other.absent.clear();
  CHECK(whole.merged_with(other).error().code == Errc::conflict);
  other = without(1);
  other.absent[0].sha256 = Sha256Digest::parse(std::string(64, '9')).value();
  CHECK(whole.merged_with(other).error().code == Errc::conflict);
}
