// SPDX-License-Identifier: Apache-2.0
#include "store/fsck.hpp"

#include "store/collect.hpp"
#include "store/layout.hpp"
#include "store/manifests.hpp"
#include "store/quarantine.hpp"
#include "store/rebuild.hpp"
#include "store/show.hpp"
#include "store/sqlite.hpp"
#include "tests/store/fixture.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

// Thirty ways to damage a store; fsck names each, and repairs what can be repaired.

using namespace modeld;
using namespace modeld::test;
using namespace modeld::store;
namespace fs = std::filesystem;

namespace {

const Files k_files{{"config.json", "{}"}, {"sub/weights", "wwww"}};

Snapshot model() {
  return snapshot_of("org/Name", '1', k_files);
}
Variant built() {
  return variant_of(model(), "Q4_K_M", "gguf");
}

/// A store with one of everything.
class Subject {
public:
  Subject() : store(open_store(dir / "root")) {
    REQUIRE(pull(*store, model(), k_files));
    REQUIRE(ingest(*store, "gguf"));
    REQUIRE(store->publish_variant(built()));
    REQUIRE(store->record_ref({RepoId{"org/Name"}, "main", commit_of('1'), RepoId{"org/Name"}, 7}));
    REQUIRE(store->put_pin({"prod", RepoId{"org/Name"}, commit_of('1'), {built().recipe}, 0, 5}));
  }

  /// Shows the model in another program's folder; the record's id.
  std::string link() {
    ShowOptions options;
    options.root = dir / "shown";
    options.form = LinkForm::hardlink;
    const auto report =
        show(*store, ShowTarget::folder, ShowSubject{model(), {built()}, {}, {}}, options);
    REQUIRE(report);
    return report->link.id;
  }

  fs::path at(const std::string& path) const { return store->root() / path; }
  fs::path blob(std::string_view text) const { return store->blob_path(sha(text)); }
  void sql(const std::string& text) {
    auto db = Db::open(at(layout::k_index), Db::Access::read_write);
    REQUIRE(db);
    REQUIRE(db->execute("PRAGMA foreign_keys=OFF;" + text));
  }
  void change(const fs::path& path, std::string_view text) {
    fs::permissions(path, fs::perms::owner_all);
    write_file(path, text);
    fs::permissions(path, fs::perms(0444));
  }

  TempDir dir;
  std::unique_ptr<Store> store;
};

bool has(const FsckReport& report, std::string_view id) {
  return std::any_of(report.findings.begin(), report.findings.end(),
                     [id](const FsckFinding& finding) { return finding.id == id; });
}

std::string text_of(const FsckReport& report) {
  std::string text;
  for (const auto& finding : report.findings) {
    text += std::string(finding.id) + " " + finding.path + ": " + finding.message + " -> " +
            finding.remedy + (finding.repaired ? " done\n" : "\n");
  }
  return text;
}

struct Damage {
  std::string id;   ///< what fsck shall say
  std::string name; ///< what happened
  std::function<void(Subject&)> make;
  bool curable = true; ///< a second fsck finds nothing
  bool deep = false;
};

std::string hex_sql(std::string_view text) {
  return "x'" + sha(text).hex() + "'";
}

std::vector<Damage> damages() {
  const auto manifest = layout::snapshot_manifest(RepoId{"org/Name"}, commit_of('1'));
  const auto repo = layout::repo_manifest(RepoId{"org/Name"});
  const auto view = layout::view(RepoId{"org/Name"}, commit_of('1'));
  const auto variant = layout::variant_manifest(built().key);
  const auto forget_snapshot = "DELETE FROM snapshots; DELETE FROM snapshot_files; "
                               "DELETE FROM pins; DELETE FROM pin_recipes;";
  return {
      {"FS-01", "a blob's file was removed", [](Subject& s) { fs::remove(s.blob("wwww")); }},
      {"FS-02", "the file of an unnamed blob was removed",
       [](Subject& s) {
         REQUIRE(ingest(*s.store, "unnamed"));
         fs::remove(s.blob("unnamed"));
       }},
      {"FS-03", "a blob's row was lost",
       [](Subject& s) {
         REQUIRE(ingest(*s.store, "row lost"));
         s.sql("DELETE FROM blobs WHERE digest = " + hex_sql("row lost"));
       }},
      {"FS-05", "somebody put a file under a digest that is not its own",
       [](Subject& s) { write_file(s.blob("no such blob"), "other bytes"); }},
      {"FS-04", "a blob was truncated", [](Subject& s) { s.change(s.blob("wwww"), "ww"); }},
      {"FS-04", "a byte was appended to a blob",
       [](Subject& s) { s.change(s.blob("wwww"), "wwwwx"); }},
      {"FS-05", "a blob was overwritten with bytes of the same length",
       [](Subject& s) { s.change(s.blob("wwww"), "wWww"); }},
      {"FS-05", "a bit of a blob flipped on the disk, its time did not change",
       [](Subject& s) {
         struct stat info {};
         REQUIRE(stat(s.blob("wwww").c_str(), &info) == 0);
         s.change(s.blob("wwww"), "wVww");
         const timespec times[2] = {info.st_atim, info.st_mtim};
         REQUIRE(utimensat(AT_FDCWD, s.blob("wwww").c_str(), times, 0) == 0);
       },
       true, true},
      {"FS-06", "a blob was made writable",
       [](Subject& s) { fs::permissions(s.blob("wwww"), fs::perms(0644)); }},
      {"FS-07", "a blob was touched",
       [](Subject& s) { fs::last_write_time(s.blob("wwww"), fs::file_time_type::clock::now()); }},
      {"FS-08", "a foreign file lies among the blobs",
       [](Subject& s) { write_file(s.at("blobs/sha256/aa/notes.txt"), "x"); }},
      {"FS-08", "a foreign file lies beside the blob folders",
       [](Subject& s) { write_file(s.at("blobs/sha256/notes.txt"), "x"); }},
      {"FS-08", "a blob lies in the wrong folder",
       [](Subject& s) { write_file(s.at("blobs/sha256/zz/" + sha("wwww").hex()), "wwww"); }},
      {"FS-09", "a blob was replaced by a symbolic link",
       [](Subject& s) {
         fs::rename(s.blob("wwww"), s.dir / "moved");
         fs::create_symlink(s.dir / "moved", s.blob("wwww"));
       }},
      {"FS-09", "a blob was replaced by a folder",
       [](Subject& s) {
         fs::remove(s.blob("wwww"));
         fs::create_directory(s.blob("wwww"));
       }},
      {"FS-10", "a snapshot's manifest was removed",
       [=](Subject& s) { fs::remove(s.at(manifest)); }},
      {"FS-11", "a snapshot's manifest was cut short",
       [=](Subject& s) { write_file(s.at(manifest), read_file(s.at(manifest)).substr(0, 50)); }},
      {"FS-12", "a snapshot's manifest was edited",
       [=](Subject& s) {
         auto other = model();
         other.files.pop_back();
         write_file(s.at(manifest), other.to_json());
       }},
      {"FS-12", "a snapshot grew, and its rows did not",
       [=](Subject& s) {
         s.sql("INSERT INTO absent_files SELECT repo, commit_id, path, size, git_oid, NULL FROM "
               "snapshot_files WHERE path = 'config.json'; "
               "DELETE FROM snapshot_files WHERE path = 'config.json'; "
               "UPDATE snapshots SET files = files - 1, bytes = (SELECT sum(size) FROM "
               "snapshot_files f WHERE f.commit_id = snapshots.commit_id);");
       }},
      {"FS-13", "a snapshot's rows were lost", [=](Subject& s) { s.sql(forget_snapshot); }},
      {"FS-14", "a snapshot's rows and a blob were lost",
       [=](Subject& s) {
         s.sql(forget_snapshot + std::string("DELETE FROM blobs WHERE digest = ") +
               hex_sql("wwww"));
         fs::remove(s.blob("wwww"));
       },
       false},
      {"FS-15", "a manifest was copied under another commit",
       [=](Subject& s) {
         fs::copy_file(s.at(manifest),
                       s.at(layout::snapshot_manifest(RepoId{"org/Name"}, commit_of('2'))));
       }},
      {"FS-16", "a file was removed from a view",
       [=](Subject& s) { fs::remove(s.at(view + "/config.json")); }},
      {"FS-16", "a file of a view was replaced by another",
       [=](Subject& s) {
         fs::remove(s.at(view + "/config.json"));
         write_file(s.at(view + "/config.json"), "{\"changed\": true}");
       }},
      {"FS-16", "a whole view was removed", [=](Subject& s) { fs::remove_all(s.at(view)); }},
      {"FS-17", "somebody saved a file into a view",
       [=](Subject& s) { write_file(s.at(view + "/adapter.safetensors"), "mine"); }, false},
      {"FS-18", "a view of nothing is left",
       [](Subject& s) {
         fs::create_directories(s.at(layout::view(RepoId{"org/Gone"}, commit_of('3'))));
         fs::create_hard_link(s.blob("wwww"),
                              s.at(layout::view(RepoId{"org/Gone"}, commit_of('3')) + "/weights"));
       }},
      {"FS-19", "a variant's manifest was removed", [=](Subject& s) { fs::remove(s.at(variant)); }},
      {"FS-20", "a variant's manifest was cut short",
       [=](Subject& s) { write_file(s.at(variant), "{\"format\":"); }},
      {"FS-21", "a variant's manifest was edited",
       [=](Subject& s) {
         auto other = built();
         other.build_ms = 99;
         write_file(s.at(variant), other.to_json());
       }},
      {"FS-22", "a variant's row was lost",
       [](Subject& s) { s.sql("DELETE FROM variants; DELETE FROM variant_sources;"); }},
      {"FS-23", "a variant's row and bytes were lost",
       [](Subject& s) {
         s.sql("DELETE FROM variants; DELETE FROM variant_sources; DELETE FROM blobs WHERE digest "
               "= " +
               hex_sql("gguf"));
         fs::remove(s.blob("gguf"));
       }},
      {"FS-24", "a variant was removed from its view",
       [=](Subject& s) { fs::remove(s.at(view + "/Name-Q4_K_M.gguf")); }},
      {"FS-25", "a repository's record was removed", [=](Subject& s) { fs::remove(s.at(repo)); }},
      {"FS-26", "a repository's rows were lost",
       [](Subject& s) { s.sql("DELETE FROM repos; DELETE FROM refs;"); }},
      {"FS-27", "a pin's record was edited",
       [](Subject& s) { write_file(s.at("pins/prod.json"), "{}"); }},
      {"FS-28", "a pin's row was lost",
       [](Subject& s) { s.sql("DELETE FROM pins; DELETE FROM pin_recipes;"); }},
      {"FS-29", "a foreign file lies among the manifests",
       [](Subject& s) { write_file(s.at("snapshots/org/Name/notes.txt"), "x"); }, false},
      {"FS-30", "a row names a blob that has no row",
       [](Subject& s) { s.sql("DELETE FROM blobs WHERE digest = " + hex_sql("gguf")); }},
      {"FS-31", "a snapshot's sums are wrong",
       [](Subject& s) { s.sql("UPDATE snapshots SET bytes = 1"); }},
      {"FS-32", "the marker was removed", [](Subject& s) { fs::remove(s.at("modeld.id")); }},
      {"FS-33", "a shown file was removed",
       [](Subject& s) {
         s.link();
         fs::remove(s.dir / "shown/sub/weights");
       }},
      {"FS-33", "a shown file was replaced by a link that leads nowhere",
       [](Subject& s) {
         s.link();
         fs::remove(s.dir / "shown/config.json");
         fs::create_symlink("nowhere", s.dir / "shown/config.json");
       }},
      {"FS-33", "somebody saved over a shown file",
       [](Subject& s) {
         s.link();
         fs::remove(s.dir / "shown/config.json");
         write_file(s.dir / "shown/config.json", "mine");
       },
       false},
      {"FS-33", "the folder of a link is gone",
       [](Subject& s) {
         s.link();
         fs::remove_all(s.dir / "shown");
       },
       false},
      {"FS-34", "a link's record was removed",
       [](Subject& s) { fs::remove(s.at(layout::link_manifest(s.link()))); }},
      {"FS-34", "a link's record was cut short",
       [](Subject& s) { write_file(s.at(layout::link_manifest(s.link())), "{"); }},
      {"FS-34", "a link's rows were lost",
       [](Subject& s) {
         s.link();
         s.sql("DELETE FROM links; DELETE FROM link_files;");
       }},
      {"FS-34", "a foreign file lies among the links",
       [](Subject& s) {
         s.link();
         write_file(s.at("links/notes.json"), "x");
       }},
  };
}

std::vector<std::string> row_dump(const fs::path& index) {
  auto db = Db::open(index, Db::Access::read_only);
  REQUIRE(db);
  std::vector<std::string> rows;
  for (const char* sql :
       {"SELECT hex(digest)||size||coalesce(hex(git_oid),'-')||mtime_ns||damaged FROM blobs ORDER "
        "BY 1",
        "SELECT repo||canonical||gated FROM repos ORDER BY 1",
        "SELECT repo||uid FROM repo_users ORDER BY 1",
        "SELECT repo||revision||hex(commit_id)||checked FROM refs ORDER BY 1",
        "SELECT repo||hex(commit_id)||files||bytes||added||damaged FROM snapshots ORDER BY 1",
        "SELECT repo||hex(commit_id)||path||size||hex(git_oid)||hex(digest) FROM snapshot_files "
        "ORDER BY 1",
        "SELECT hex(key)||repo||hex(commit_id)||recipe||converter||coalesce(hex(imatrix),'-')||"
        "hex(result)||size||file_name||build_ms||added FROM variants ORDER BY 1",
        "SELECT hex(key)||path||hex(digest) FROM variant_sources ORDER BY 1",
        "SELECT name||repo||hex(commit_id)||uid||created FROM pins ORDER BY 1",
        "SELECT name||recipe FROM pin_recipes ORDER BY 1",
        "SELECT id||target||root||repo||hex(commit_id)||uid||created||standing FROM links ORDER BY "
        "1",
        "SELECT id||path||hex(digest)||form FROM link_files ORDER BY 1"}) {
    auto query = db->query(sql);
    for (;;) {
      const auto row = query.step();
      REQUIRE(row);
      if (!*row) break;
      rows.push_back(query.text(0));
    }
  }
  return rows;
}

} // namespace

TEST_CASE("fsck finds nothing wrong with a sound store", "[store][fsck]") {
  Subject subject;
  const auto report = fsck(*subject.store, {true, true}, nullptr);
  REQUIRE(report);
  INFO(text_of(*report));
  CHECK(report->clean());
  CHECK(report->blobs == 3);
  CHECK(report->snapshots == 1);
  CHECK(report->variants == 1);
}

TEST_CASE("fsck says exactly what is wrong and repairs what can be repaired", "[store][fsck]") {
  const auto all = damages();
  CHECK(all.size() >= 30);
  for (const Damage& damage : all) {
    INFO(damage.id << ": " << damage.name);
    Subject subject;
    damage.make(subject);
    const auto dry = fsck(*subject.store, {false, damage.deep}, nullptr);
    REQUIRE(dry);
    INFO(text_of(*dry));
    CHECK(has(*dry, damage.id));
    const auto repaired = fsck(*subject.store, {true, damage.deep}, nullptr);
    REQUIRE(repaired);
    INFO(text_of(*repaired));
    CHECK(has(*repaired, damage.id));
    if (!damage.curable) continue;
    // A lost blob is marked, and stays lost until it is fetched again: then all is well.
    for (const auto& [path, text] : k_files) {
      REQUIRE(ingest(*subject.store, text));
    }
    REQUIRE(ingest(*subject.store, "gguf"));
    const auto again = fsck(*subject.store, {true, true}, nullptr);
    REQUIRE(again);
    const auto last = fsck(*subject.store, {false, true}, nullptr);
    REQUIRE(last);
    INFO("at the end: " << text_of(*last));
    CHECK(last->clean());
    check_invariants(*subject.store);
  }
}

TEST_CASE("fsck changes nothing without repair", "[store][fsck]") {
  Subject subject;
  fs::remove(subject.at("pins/prod.json"));
  REQUIRE(fsck(*subject.store, {}, nullptr));
  CHECK_FALSE(fs::exists(subject.at("pins/prod.json")));
}

TEST_CASE("fsck has a test for each rule but none twice", "[store][fsck]") {
  std::vector<std::string> ids;
  for (const auto& damage : damages()) {
    ids.push_back(damage.id);
  }
  for (const auto& rule : fsck_rules()) {
    INFO(rule.id);
    CHECK(std::count(ids.begin(), ids.end(), std::string(rule.id)) >= 1);
  }
}

TEST_CASE("Store::open rebuilds an index that equals the old one, row for row",
          "[store][fsck][rebuild]") {
  Subject subject;
  REQUIRE(subject.store->record_access(RepoId{"org/Name"}, true, 1000));
  REQUIRE(ingest(*subject.store, "unnamed"));
  subject.link();
  const Files one{{"a", "x"}};
  REQUIRE(pull(*subject.store, snapshot_of("gpt2", '2', one), one));
  const auto index = subject.at(layout::k_index);
  subject.store.reset();
  const auto before = row_dump(index);
  CHECK(before.size() > 15);
  auto options = small_options();
  options.rebuild_index = true;
  SECTION("from a sound one") {}
  SECTION("from none") {
    fs::remove(index);
  }
  SECTION("from garbage") {
    write_file(index, std::string(8192, 'x'));
  }
  const auto store = open_store(subject.dir / "root", options);
  CHECK(row_dump(index) == before);
  check_invariants(*store);
  CHECK(fsck(*store, {}, nullptr)->clean());
}

TEST_CASE("S4 an index is made again while the store is open, equal to the old one row for row",
          "[store][fsck][rebuild][S4]") {
  Subject subject;
  subject.link();
  REQUIRE(subject.store->record_access(RepoId{"org/Name"}, true, 1000));
  JobRecord job;
  job.id = "j1";
  job.kind = "pull";
  REQUIRE(subject.store->put_job(job));
  REQUIRE(subject.store->grant_lease(
      sha("wwww"), {LeaseHolder::Kind::deadline, 0, 0, 0, now() + 99}, 0, "test"));
  subject.store->touch(sha("wwww"));
  const auto before = row_dump(subject.at(layout::k_index));
  const auto report = rebuild_open_index(*subject.store);
  if (!report) FAIL(report.error().message);
  CHECK(report->differences.empty());
  CHECK(report->unread.empty());
  CHECK(report->rows == before.size());
  CHECK(row_dump(subject.at(layout::k_index)) == before);
  CHECK(*subject.store->find_job("j1") == job);
  CHECK(subject.store->list_leases()->size() == 1);
  CHECK(subject.store->list_snapshots()->front().used > 0);
  REQUIRE(ingest(*subject.store, "goes on"));
  check_invariants(*subject.store);
}

TEST_CASE("S4 a rebuild tells in which table the old index was wrong",
          "[store][fsck][rebuild][S4]") {
  Subject subject;
  subject.sql("UPDATE variants SET build_ms = 77; DELETE FROM pin_recipes;");
  const auto report = rebuild_open_index(*subject.store);
  REQUIRE(report);
  REQUIRE(report->differences.size() == 2);
  CHECK(report->differences[0].table == "variants");
  CHECK(report->differences[0].only_here == 1);
  CHECK(report->differences[0].only_there == 1);
  CHECK(report->differences[1].table == "pin_recipes");
  CHECK(report->differences[1].only_there == 1);
  CHECK(fsck(*subject.store, {}, nullptr)->clean());
}

TEST_CASE("S1 a quarantined blob is taken out of other programs' folders, and comes back repaired",
          "[store][scrub][show][S1][E08]") {
  Subject subject;
  subject.link();
  const auto shown = subject.dir / "shown/sub/weights";
  subject.change(shown, "wVww");
  const auto report = scrub(*subject.store, {}, nullptr);
  REQUIRE(report);
  REQUIRE(report->damaged.size() == 1);
  CHECK(report->damaged[0].shown == std::vector<std::string>{shown.string()});
  CHECK_FALSE(fs::exists(shown));
  REQUIRE(ingest(*subject.store, "wwww"));
  CHECK(*mend_links(*subject.store) == 1);
  CHECK(read_file(shown) == "wwww");
  CHECK(check_links(*subject.store)->empty());
}

TEST_CASE("Store::open rebuilds what is damaged as damaged", "[store][fsck][rebuild]") {
  Subject subject;
  fs::remove(subject.blob("wwww"));
  subject.store.reset();
  auto options = small_options();
  options.rebuild_index = true;
  const auto store = open_store(subject.dir / "root", options);
  CHECK(store->find_snapshot(RepoId{"org/Name"}, commit_of('1')).error().code == Errc::corrupt);
  REQUIRE(ingest(*store, "wwww"));
  CHECK(*store->find_snapshot(RepoId{"org/Name"}, commit_of('1')));
  check_invariants(*store);
}

TEST_CASE("E08 a change through an exposed path is found before the next use, with those concerned",
          "[store][scrub][E08]") {
  Subject subject;
  const auto path = subject.at(layout::view(RepoId{"org/Name"}, commit_of('1'))) / "sub/weights";
  CHECK(looks_unchanged(*subject.store, sha("wwww")));
  CHECK(check_before_use(*subject.store, sha("wwww")));
  SECTION("one byte appended") {
    subject.change(path, "wwww!");
  }
  SECTION("overwritten in place") {
    subject.change(path, "WWWW");
  }
  CHECK_FALSE(looks_unchanged(*subject.store, sha("wwww")));
  const auto used = check_before_use(*subject.store, sha("wwww"));
  REQUIRE_FALSE(used);
  CHECK(used.error().code == Errc::corrupt);
  CHECK(used.error().message.find("org/Name@" + commit_of('1').hex() + ": sub/weights") !=
        std::string::npos);
  CHECK_FALSE(fs::exists(subject.blob("wwww")));
  CHECK_FALSE(fs::exists(path));
  CHECK(subject.store->find_snapshot(RepoId{"org/Name"}, commit_of('1')).error().code ==
        Errc::corrupt);
  CHECK(subject.store->list_snapshots()->front().damaged);
  REQUIRE(list_damaged(*subject.store)->size() == 1);

  REQUIRE(ingest(*subject.store, "wwww"));
  CHECK(read_file(path) == "wwww");
  check_invariants(*subject.store);
  CHECK(list_damaged(*subject.store)->empty());
}

TEST_CASE("E08 replacing an exposed file does not reach the blob", "[store][scrub][E08]") {
  Subject subject;
  const auto path = subject.at(layout::view(RepoId{"org/Name"}, commit_of('1'))) / "sub/weights";
  fs::remove(path);
  write_file(path, "replaced");
  CHECK(looks_unchanged(*subject.store, sha("wwww")));
  CHECK(read_file(subject.blob("wwww")) == "wwww");
}

TEST_CASE("check_before_use forgives a touch", "[store][scrub]") {
  Subject subject;
  fs::last_write_time(subject.blob("wwww"), fs::file_time_type::clock::now());
  CHECK_FALSE(looks_unchanged(*subject.store, sha("wwww")));
  CHECK(check_before_use(*subject.store, sha("wwww")));
  CHECK(looks_unchanged(*subject.store, sha("wwww")));
}

TEST_CASE("scrub finds a flipped bit that no time tells of", "[store][scrub]") {
  Subject subject;
  const auto time = fs::last_write_time(subject.blob("wwww"));
  subject.change(subject.blob("wwww"), "wwwv");
  fs::last_write_time(subject.blob("wwww"), time);
  Progress progress;
  const auto quick = scrub(*subject.store, {0, true, {}}, nullptr);
  REQUIRE(quick);
  CHECK(quick->damaged.empty());
  const auto report = scrub(*subject.store, {}, &progress);
  REQUIRE(report);
  CHECK(report->blobs == 3);
  REQUIRE(report->damaged.size() == 1);
  CHECK(report->damaged[0].digest == sha("wwww"));
  CHECK(report->damaged[0].snapshots.size() == 1);
  CHECK(progress.done == 10);
  CHECK(scrub(*subject.store, {}, nullptr)->damaged.empty());
}

TEST_CASE("scrub of a damaged variant makes it count as not built", "[store][scrub]") {
  Subject subject;
  subject.change(subject.blob("gguf"), "GGUF");
  const auto report = scrub(*subject.store, {}, nullptr);
  REQUIRE(report->damaged.size() == 1);
  CHECK(report->damaged[0].variants == std::vector{built().key});
  CHECK_FALSE(*subject.store->find_variant(built().key));
  REQUIRE(ingest(*subject.store, "gguf"));
  CHECK(*subject.store->find_variant(built().key));
  check_invariants(*subject.store);
}

TEST_CASE("scrub stops when it is cancelled", "[store][scrub]") {
  Subject subject;
  Progress progress;
  progress.cancel = true;
  CHECK(scrub(*subject.store, {}, &progress).error().code == Errc::cancelled);
}
