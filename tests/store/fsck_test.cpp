// SPDX-License-Identifier: Apache-2.0
#include "store/fsck.hpp"

#include "store/collect.hpp"
#include "store/layout.hpp"
#include "store/manifests.hpp"
#include "store/quarantine.hpp"
#include "store/rebuild.hpp"
#include "store/show.hpp"
#include "store/sqlite.hpp"
#include "store/standing.hpp"
#include "tests/store/fixture.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>

// Some seventy ways to damage a store; fsck names each, and repairs what can be repaired.

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

std::unique_ptr<Store> open_with_reserve(const fs::path& root) {
  StoreOptions options = small_options();
  options.reserve_file = 1U << 20;
  auto store = Store::open(root, options);
  REQUIRE(store);
  return *std::move(store);
}

/// Root without its rights over other users' files, as an ordinary user is.
class Powerless {
public:
  explicit Powerless(bool wanted) : wanted_(wanted) {
    if (wanted_) set(~bits());
  }
  ~Powerless() {
    if (wanted_) set(bits());
  }
  Powerless(const Powerless&) = delete;
  Powerless& operator=(const Powerless&) = delete;

private:
  static std::uint32_t bits() {
    return 1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH | 1U << CAP_FOWNER;
  }
  /// Takes those away that are not in `mask`, or adds those that are, as far as permitted.
  static void set(std::uint32_t mask) {
    __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, 2> data{};
    REQUIRE(syscall(SYS_capget, &head, data.data()) == 0);
    data[0].effective =
        mask == bits() ? data[0].effective | (data[0].permitted & mask) : data[0].effective & mask;
    REQUIRE(syscall(SYS_capset, &head, data.data()) == 0);
  }

  bool wanted_;
};

/// A store with one of everything.
class Subject {
public:
  Subject() : store(open_with_reserve(dir / "root")) {
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
  bool powerless = false; ///< only where root can take its own rights away
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
      {"FS-01", "a blob's file was removed, a view still has it",
       [](Subject& s) { fs::remove(s.blob("wwww")); }},
      {"FS-01", "a blob's file was removed, and what the view showed",
       [=](Subject& s) {
         fs::remove(s.blob("wwww"));
         fs::remove(s.at(view + "/sub/weights"));
       }},
      {"FS-01", "a folder of blobs was removed",
       [](Subject& s) { fs::remove_all(s.blob("wwww").parent_path()); }},
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
      {"FS-41", "a folder was closed",
       [](Subject& s) { fs::permissions(s.at("snapshots/org"), fs::perms(0700)); }},
      {"FS-41", "a view's folder was opened to all",
       [](Subject& s) { fs::permissions(s.at("views/org/Name"), fs::perms(0777)); }},
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
      {"FS-09", "a blob was replaced by a pipe",
       [](Subject& s) {
         fs::remove(s.blob("wwww"));
         REQUIRE(mkfifo(s.blob("wwww").c_str(), 0644) == 0);
       }},
      {"FS-05", "two blobs changed places",
       [](Subject& s) {
         fs::rename(s.blob("wwww"), s.dir / "one");
         fs::rename(s.blob("gguf"), s.blob("wwww"));
         fs::rename(s.dir / "one", s.blob("gguf"));
       },
       true, true},
      {"FS-08", "a blob has a second name in capitals",
       [](Subject& s) {
         std::string name = sha("wwww").hex();
         std::transform(name.begin(), name.end(), name.begin(), ::toupper);
         fs::copy_file(s.blob("wwww"), s.blob("wwww").parent_path() / name);
       }},
      {"FS-07", "the index has another size of a blob",
       [](Subject& s) { s.sql("UPDATE blobs SET size = 7 WHERE digest = " + hex_sql("wwww")); }},
      {"FS-07", "the index has another git id of a blob",
       [](Subject& s) {
         s.sql("UPDATE blobs SET git_oid = zeroblob(20) WHERE digest = " + hex_sql("wwww"));
       },
       true, true},
      {"FS-07", "the index takes a good blob for damaged",
       [](Subject& s) { s.sql("UPDATE blobs SET damaged = 1 WHERE digest = " + hex_sql("wwww")); }},
      {"FS-35", "a blob is in quarantine",
       [](Subject& s) { REQUIRE(quarantine(*s.store, sha("wwww"), "a test says so")); }},
      {"FS-36", "a blob belongs to somebody else, who keeps it to himself",
       [](Subject& s) {
         REQUIRE(chmod(s.blob("wwww").c_str(), 0400) == 0);
         REQUIRE(chown(s.blob("wwww").c_str(), 12345, 12345) == 0);
       },
       true, false, true},
      {"FS-10", "a snapshot's manifest was replaced by a folder with something in it",
       [=](Subject& s) {
         fs::remove(s.at(manifest));
         fs::create_directory(s.at(manifest));
         write_file(s.at(manifest + "/mine"), "x");
       }},
      {"FS-10", "a snapshot's manifest was replaced by a pipe",
       [=](Subject& s) {
         fs::remove(s.at(manifest));
         REQUIRE(mkfifo(s.at(manifest).c_str(), 0644) == 0);
       }},
      {"FS-10", "a snapshot's manifest was replaced by a link that leads to itself",
       [=](Subject& s) {
         fs::remove(s.at(manifest));
         fs::create_symlink(s.at(manifest).filename(), s.at(manifest));
       }},
      {"FS-10", "a file is in the place of a repository's folder",
       [](Subject& s) {
         fs::remove_all(s.at("snapshots/org/Name"));
         write_file(s.at("snapshots/org/Name"), "x");
       }},
      {"FS-10", "all of a repository's manifests were removed",
       [](Subject& s) { fs::remove_all(s.at("snapshots/org")); }},
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
      {"FS-12", "a row has a name that leads out of the store",
       [](Subject& s) {
         s.sql("INSERT INTO snapshots (repo, commit_id, files, bytes, added) VALUES "
               "('../../out', zeroblob(20), 0, 0, 1)");
       }},
      {"FS-12", "a row has a path that leads out of the store",
       [](Subject& s) {
         s.sql("UPDATE snapshot_files SET path = '../../out' WHERE path = 'config.json'");
       }},
      {"FS-10", "a row of a snapshot came from nowhere",
       [](Subject& s) {
         s.sql("INSERT INTO snapshots (repo, commit_id, files, bytes, added) VALUES "
               "('some/name', zeroblob(20), 0, 0, 1)");
       }},
      {"FS-27", "a row of a pin names a snapshot that is not here",
       [](Subject& s) {
         s.sql("INSERT INTO pins VALUES ('ghost', 'no/where', zeroblob(20), 0, 1)");
       }},
      {"FS-16", "a file is in the place of a view",
       [=](Subject& s) {
         fs::remove_all(s.at(view));
         write_file(s.at(view), "x");
       }},
      {"FS-12", "a snapshot's manifest was laid out anew",
       [=](Subject& s) { write_file(s.at(manifest), " " + read_file(s.at(manifest)) + "\n\n"); }},
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
      {"FS-37", "the pieces of a blob are no list of pieces",
       [](Subject& s) {
         fs::create_directories(s.at(layout::pieces(sha("wwww"))).parent_path());
         write_file(s.at(layout::pieces(sha("wwww"))), "nonsense");
       }},
      {"FS-37", "there are pieces of no blob",
       [](Subject& s) {
         fs::create_directories(s.at(layout::pieces(sha("gone"))).parent_path());
         write_file(s.at(layout::pieces(sha("gone"))), "modeld.pieces 1 4194304\n");
       }},
      {"FS-38", "the folder of blobs was removed",
       [](Subject& s) { fs::remove_all(s.at("blobs")); }},
      {"FS-38", "a file is in the place of the folder of pins",
       [](Subject& s) {
         fs::remove_all(s.at("pins"));
         write_file(s.at("pins"), "x");
       }},
      {"FS-38", "the folder of variants was removed",
       [](Subject& s) { fs::remove_all(s.at("variants")); }},
      {"FS-38", "a folder of blobs cannot be written to",
       [](Subject& s) { REQUIRE(chmod(s.blob("wwww").parent_path().c_str(), 0555) == 0); }, true,
       false, true},
      {"FS-38", "a file is in the place of the quarantine",
       [](Subject& s) { write_file(s.at("quarantine"), "x"); }},
      {"FS-39", "the record of a standing link was cut short",
       [](Subject& s) {
         StandingLink link;
         link.target = ShowTarget::folder;
         link.root = s.dir / "shown";
         const auto put = put_standing(*s.store, link);
         REQUIRE(put);
         write_file(s.at("standing/" + put->id + ".json"), "{\"format\":");
       }},
      {"FS-40", "the reserve was cut short",
       [](Subject& s) { fs::resize_file(s.at("reserve"), 10); }},
      {"FS-40", "a folder is in the place of the reserve",
       [](Subject& s) {
         fs::remove(s.at("reserve"));
         fs::create_directory(s.at("reserve"));
       }},
      {"FS-29", "a foreign file lies in the root",
       [](Subject& s) { write_file(s.at("notes.txt"), "x"); }, false},
      {"FS-29", "a foreign folder lies among the pins",
       [](Subject& s) { fs::create_directory(s.at("pins/mine")); }, false},
      {"FS-29", "a foreign file lies among the organisations",
       [](Subject& s) { write_file(s.at("snapshots/notes.txt"), "x"); }, false},
      {"FS-17", "a foreign file lies among the views",
       [](Subject& s) { write_file(s.at("views/org/notes.txt"), "x"); }, false},
      {"FS-25", "the record of a repository that no row knows cannot be read",
       [](Subject& s) {
         fs::create_directories(s.at("snapshots/org/Other"));
         write_file(s.at("snapshots/org/Other/repo.json"), "{");
       }},
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
  CHECK(all.size() >= 70);
  for (const Damage& damage : all) {
    INFO(damage.id << ": " << damage.name);
    // Nobody else can give a file away.
    if (damage.powerless && geteuid() != 0) continue;
    Subject subject;
    damage.make(subject);
    const Powerless powerless(damage.powerless);
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

TEST_CASE("fsck puts a lost blob back from where its bytes live on", "[store][fsck]") {
  Subject subject;
  subject.link();
  const auto weights = subject.blob("wwww");
  SECTION("from a view, as the same inode") {
    fs::remove(weights);
    REQUIRE(fsck(*subject.store, {true, false}, nullptr));
    CHECK(fs::hard_link_count(weights) == 3);
  }
  SECTION("from another program's folder") {
    fs::remove(weights);
    fs::remove(subject.at(layout::view(RepoId{"org/Name"}, commit_of('1')) + "/sub/weights"));
    REQUIRE(fsck(*subject.store, {true, false}, nullptr));
  }
  SECTION("not from a file that anybody may write to, but by a copy of it") {
    fs::remove(weights);
    fs::remove(subject.at(layout::view(RepoId{"org/Name"}, commit_of('1')) + "/sub/weights"));
    fs::permissions(subject.dir / "shown/sub/weights", fs::perms(0644));
    REQUIRE(fsck(*subject.store, {true, false}, nullptr));
    CHECK_FALSE(fs::equivalent(weights, subject.dir / "shown/sub/weights"));
  }
  CHECK(read_file(weights) == "wwww");
  const auto report = fsck(*subject.store, {true, true}, nullptr);
  REQUIRE(report);
  INFO(text_of(*report));
  CHECK(report->clean());
  check_invariants(*subject.store);
}

TEST_CASE("fsck tells of a damaged blob until it is repaired", "[store][fsck]") {
  Subject subject;
  subject.change(subject.blob("wwww"), "wWww");
  for (const bool repair : {true, true, false}) {
    const auto report = fsck(*subject.store, {repair, false}, nullptr);
    REQUIRE(report);
    INFO(text_of(*report));
    CHECK(has(*report, "FS-35"));
    CHECK_THAT(report->findings.back().message, Catch::Contains("org/Name@1"));
    CHECK_FALSE(report->findings.back().repaired);
  }
  REQUIRE(ingest(*subject.store, "wwww"));
  CHECK(fsck(*subject.store, {}, nullptr)->clean());
}

TEST_CASE("S4 an index is not given up before it has written the records that are lost",
          "[store][fsck][rebuild][S4]") {
  Subject subject;
  const auto manifest = subject.at(layout::snapshot_manifest(RepoId{"org/Name"}, commit_of('1')));
  SECTION("removed") {
    fs::remove_all(subject.at("snapshots/org"));
    fs::remove_all(subject.at("pins/prod.json"));
    fs::remove(subject.at(layout::variant_manifest(built().key)));
  }
  SECTION("a folder in the place of one") {
    fs::remove(manifest);
    fs::create_directory(manifest);
  }
  const auto saved = save_records(*subject.store);
  REQUIRE(saved);
  CHECK_FALSE(saved->clean());
  const auto rebuilt = rebuild_open_index(*subject.store);
  REQUIRE(rebuilt);
  CHECK(rebuilt->differences.empty());
  CHECK(fsck(*subject.store, {}, nullptr)->clean());
}

TEST_CASE("S4 a lost index is made again, and not taken for an empty one", "[store][rebuild][S4]") {
  Subject subject;
  const fs::path root = subject.store->root();
  subject.store.reset();
  const auto before = row_dump(root / layout::k_index);
  SECTION("removed") {
    fs::remove(root / layout::k_index);
  }
  SECTION("empty") {
    write_file(root / layout::k_index, "");
  }
  subject.store = open_with_reserve(root);
  CHECK(row_dump(root / layout::k_index) == before);
  REQUIRE(subject.store->mended().size() == 1);
  CHECK_THAT(subject.store->mended().front(), Catch::Contains("index was lost"));
  CollectOptions options;
  options.grace = 0;
  const auto plan = plan_collection(*subject.store, options);
  REQUIRE(plan);
  CHECK(plan->won == 0);
}

TEST_CASE("an index that lacks a table or may not be written is told at the start, with what to do",
          "[store][index]") {
  Subject subject;
  const fs::path root = subject.store->root();
  const fs::path file = subject.at(layout::k_index);
  std::string wrong = "missing";
  bool powerless = false;
  SECTION("a table") {
    subject.sql("DROP TABLE leases");
  }
  SECTION("an index of it") {
    subject.sql("DROP INDEX snapshot_files_by_digest");
  }
  SECTION("its version") {
    subject.sql("PRAGMA user_version = 0");
    wrong = "no version";
  }
  SECTION("the right to write") {
    REQUIRE(chmod(file.c_str(), 0444) == 0);
    wrong = "may not be written";
    powerless = geteuid() == 0;
  }
  subject.store.reset();
  {
    const Powerless guard(powerless);
    const auto refused = Store::open(root, small_options());
    REQUIRE_FALSE(refused);
    CHECK_THAT(refused.error().message, Catch::Contains(wrong));
    CHECK_THAT(refused.error().hint, Catch::Contains("--rebuild-index"));
  }
  StoreOptions options = small_options();
  options.rebuild_index = true;
  const auto opened = Store::open(root, options);
  REQUIRE(opened);
  CHECK((*opened)->list_snapshots()->size() == 1);
}

TEST_CASE("a lost marker is written again only where that is asked for", "[store][fsck]") {
  Subject subject;
  const fs::path root = subject.store->root();
  subject.store.reset();
  SECTION("removed") {
    fs::remove(root / "modeld.id");
  }
  SECTION("cut short") {
    write_file(root / "modeld.id", "modeld.st");
  }
  SECTION("a folder") {
    fs::remove(root / "modeld.id");
    fs::create_directory(root / "modeld.id");
  }
  StoreOptions options = small_options();
  const auto refused = Store::open(root, options);
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().hint, Catch::Contains("--restore-marker"));
  options.restore_marker = true;
  const auto opened = Store::open(root, options);
  REQUIRE(opened);
  CHECK((*opened)->list_snapshots()->size() == 1);
  CHECK(fsck(**opened, {}, nullptr)->clean());
}

TEST_CASE("a marker is not made for a folder that is no store", "[store]") {
  TempDir dir;
  fs::create_directory(dir / "root");
  write_file(dir / "root/notes.txt", "mine");
  StoreOptions options = small_options();
  options.restore_marker = true;
  const auto refused = Store::open(dir / "root", options);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::conflict);
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
