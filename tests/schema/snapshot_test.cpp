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
