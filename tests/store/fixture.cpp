// SPDX-License-Identifier: Apache-2.0
#include "tests/store/fixture.hpp"

#include "store/index.hpp"
#include "store/layout.hpp"
#include "store/manifests.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace modeld::test {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

void write_file(const fs::path& path, std::string_view text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

namespace {

void check_blob_files(const fs::path& root) {
  for (const auto& entry : fs::recursive_directory_iterator(root / store::layout::k_blobs)) {
    if (!entry.is_regular_file()) continue;
    INFO(entry.path().string());
    CHECK(sha(read_file(entry.path())).hex() == entry.path().filename().string());
    struct stat info {};
    REQUIRE(stat(entry.path().c_str(), &info) == 0);
    CHECK((info.st_mode & 0777) == 0444);
  }
}

void check_blob_rows(store::Store& store) {
  auto index = store::Index::open(store.root() / store::layout::k_index,
                                  store::Db::Access::read_only, nullptr);
  REQUIRE(index);
  const auto rows = index->list_blobs();
  REQUIRE(rows);
  for (const auto& row : *rows) {
    if (row.damaged) continue;
    std::error_code ec;
    CHECK(fs::file_size(store.blob_path(row.info.sha256), ec) == row.info.size);
  }
}

void check_snapshots(store::Store& store) {
  const auto list = store.list_snapshots();
  REQUIRE(list);
  for (const auto& row : *list) {
    INFO(row.repo.text + "@" + row.commit.hex());
    const auto snapshot = store.find_snapshot(row.repo, row.commit);
    REQUIRE(snapshot);
    REQUIRE(*snapshot);
    CHECK((*snapshot)->files.size() == row.files);
    CHECK((*snapshot)->bytes() == row.bytes);
    const auto manifest =
        read_file(store.root() / store::layout::snapshot_manifest(row.repo, row.commit));
    // The file is written first: a snapshot that grew may be one change ahead of its row.
    const auto written = Snapshot::from_json(manifest);
    REQUIRE(written);
    CHECK(manifest == written->to_json());
    CHECK(*(*snapshot)->merged_with(*written) == *written);
    for (const auto& file : (*snapshot)->files) {
      INFO(file.path);
      const auto blob = store.find_blob(file.sha256);
      REQUIRE(blob);
      REQUIRE(*blob);
      CHECK(sha(read_file(store.snapshot_folder(row.repo, row.commit) / file.path)) == file.sha256);
    }
  }
}

void check_variants(store::Store& store) {
  const auto variants = store.list_variants();
  REQUIRE(variants);
  for (const auto& variant : *variants) {
    INFO(variant.file_name);
    CHECK(read_file(store.root() / store::layout::variant_manifest(variant.key)) ==
          variant.to_json());
    CHECK(sha(read_file(store.variant_path(variant))) == variant.result);
    const auto found = store.find_variant(variant.key);
    REQUIRE(found);
    CHECK(*found == variant);
  }
}

void check_names(store::Store& store) {
  const auto pins = store.list_pins();
  REQUIRE(pins);
  for (const auto& pin : *pins) {
    CHECK(read_file(store.root() / store::layout::pin_manifest(pin.name)) ==
          store::pin_to_json(pin));
  }
  const auto refs = store.list_refs();
  REQUIRE(refs);
  for (const auto& ref : *refs) {
    // The file is written first: after an error it may be one change ahead of the row.
    const auto row =
        store::RepoRow::from_json(read_file(store.root() / store::layout::repo_manifest(ref.repo)));
    REQUIRE(row);
    CHECK(std::any_of(row->refs.begin(), row->refs.end(),
                      [&](const store::Ref& r) { return r.revision == ref.revision; }));
  }
}

} // namespace

void check_invariants(store::Store& store) {
  check_blob_files(store.root());
  check_blob_rows(store);
  check_snapshots(store);
  check_variants(store);
  check_names(store);
}

} // namespace modeld::test
