// SPDX-License-Identifier: Apache-2.0
#include "store/show.hpp"

#include "store/collect.hpp"
#include "store/layout.hpp"
#include "store/remove.hpp"
#include "store/show_ollama.hpp"
#include "tests/store/faults.hpp"
#include "tests/store/fixture.hpp"

#include <boost/json.hpp>
#include <sys/stat.h>

#include <algorithm>
#include <set>

using namespace modeld;
using namespace modeld::test;
using namespace modeld::store;
namespace fs = std::filesystem;

namespace {

std::string pointer(std::string_view text) {
  return "version https://git-lfs.github.com/spec/v1\noid sha256:" + sha(text).hex() + "\nsize " +
         std::to_string(text.size()) + "\n";
}

const Files k_files{{"config.json", "{}"}, {"sub/model.safetensors", "weights"}};

/// A store with a snapshot whose weights are a large file on the Hub, and one variant.
class Subject {
public:
  Subject() : store(open_store(dir / "root")) {
    subject.snapshot = snapshot_of("org/Name", '1', k_files);
    subject.snapshot.files[1].git_oid = git_id(pointer("weights"));
    REQUIRE(pull(*store, subject.snapshot, k_files));
    REQUIRE(ingest(*store, "gguf"));
    auto variant = variant_of(subject.snapshot, "Q4_K_M", "gguf");
    REQUIRE(store->publish_variant(variant));
    subject.variants = {variant};
    subject.revisions = {"main"};
    subject.facts = {{variant.file_name, {"llama", 494'032'768, "Q4_K_M", "<|im_start|>", "mit"}}};
    options.root = dir / "target";
  }

  TempDir dir;
  std::unique_ptr<Store> store;
  ShowSubject subject;
  ShowOptions options;
};

/// Blocks of all distinct inodes below some folders.
std::uint64_t blocks_below(std::initializer_list<fs::path> folders) {
  std::set<std::pair<dev_t, ino_t>> seen;
  std::uint64_t blocks = 0;
  for (const fs::path& folder : folders) {
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      struct stat info {};
      if (lstat(entry.path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
      if (seen.emplace(info.st_dev, info.st_ino).second) {
        blocks += static_cast<std::uint64_t>(info.st_blocks);
      }
    }
  }
  return blocks;
}

std::vector<std::string> paths_below(const fs::path& folder) {
  std::vector<std::string> paths;
  if (!fs::exists(folder)) return paths;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_directory() || entry.is_symlink()) {
      paths.push_back(fs::relative(entry.path(), folder).string());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

} // namespace

TEST_CASE("show writes a Hugging Face cache as huggingface_hub does",
          "[store][show][huggingface]") {
  Subject s;
  const auto report = show(*s.store, ShowTarget::huggingface, s.subject, s.options);
  if (!report) FAIL(report.error().message);
  const std::string repo = "models--org--Name/";
  const std::string commit(40, '1');
  CHECK(read_file(s.options.root / (repo + "refs/main")) == commit);
  CHECK(fs::is_regular_file(s.options.root / (repo + "blobs/" + git_id("{}").hex())));
  CHECK(fs::is_regular_file(s.options.root / (repo + "blobs/" + sha("weights").hex())));
  CHECK(fs::read_symlink(s.options.root / (repo + "snapshots/" + commit + "/config.json")) ==
        "../../blobs/" + git_id("{}").hex());
  CHECK(fs::read_symlink(s.options.root /
                         (repo + "snapshots/" + commit + "/sub/model.safetensors")) ==
        "../../../blobs/" + sha("weights").hex());
  CHECK(read_file(s.options.root / (repo + "snapshots/" + commit + "/Name-Q4_K_M.gguf")) == "gguf");
  CHECK(check_links(*s.store)->empty());
}

TEST_CASE("show adds to what one place shows of a model, and replaces it where that is asked for",
          "[store][show]") {
  Subject s;
  REQUIRE(ingest(*s.store, "other gguf"));
  const auto other = variant_of(s.subject.snapshot, "Q8_0", "other gguf");
  REQUIRE(s.store->publish_variant(other));
  REQUIRE(show(*s.store, ShowTarget::models_dir, s.subject, s.options));
  s.subject.variants = {other};
  const auto both = show(*s.store, ShowTarget::models_dir, s.subject, s.options);
  REQUIRE(both);
  CHECK(paths_below(s.options.root) ==
        std::vector<std::string>{"Name-Q4_K_M.gguf", "Name-Q8_0.gguf"});
  CHECK(both->link.files.size() == 2);
  s.options.replace = true;
  const auto one = show(*s.store, ShowTarget::models_dir, s.subject, s.options);
  REQUIRE(one);
  CHECK(paths_below(s.options.root) == std::vector<std::string>{"Name-Q8_0.gguf"});
  CHECK(list_links(*s.store)->size() == 1);
  REQUIRE(hide(*s.store, one->link.id));
  CHECK(fs::is_empty(s.options.root));
  check_invariants(*s.store);
}

TEST_CASE("hide leaves no empty folders behind", "[store][show]") {
  Subject s;
  const auto report = show(*s.store, ShowTarget::huggingface, s.subject, s.options);
  REQUIRE(report);
  fs::create_directories(s.options.root / "models--org--Name/mine");
  REQUIRE(hide(*s.store, report->link.id));
  CHECK(fs::exists(s.options.root / "models--org--Name/mine"));
  CHECK_FALSE(fs::exists(s.options.root / "models--org--Name/snapshots"));
  CHECK_FALSE(fs::exists(s.options.root / "models--org--Name/blobs"));
}

TEST_CASE("E01 three consumers on one file system use no blocks again", "[store][show][E01]") {
  Subject s;
  const std::string big(1U << 20, 'x');
  REQUIRE(ingest(*s.store, big));
  auto snapshot = snapshot_of("org/Big", '2', {{"Big-Q8_0.gguf", big}});
  REQUIRE(s.store->publish_snapshot(snapshot));
  s.subject = {snapshot, {}, {"main"}, {{"Big-Q8_0.gguf", {"llama", 1, "Q8_0", "", ""}}}};
  const auto before = blocks_below({s.dir / "root/blobs"});
  for (const auto target : {ShowTarget::huggingface, ShowTarget::ollama, ShowTarget::lmstudio,
                            ShowTarget::models_dir}) {
    s.options.root = s.dir / std::string(slug(target));
    const auto report = show(*s.store, target, s.subject, s.options);
    if (!report) FAIL(report.error().message);
    CHECK_FALSE(report->choice.why.empty());
    const auto files = paths_below(s.options.root);
    const auto gguf = std::find_if(files.begin(), files.end(), [&](const std::string& file) {
      return fs::file_size(s.options.root / file) == big.size();
    });
    REQUIRE(gguf != files.end());
    CHECK(read_file(s.options.root / *gguf) == big);
  }
  const auto after = blocks_below({s.dir / "root/blobs", s.dir / "huggingface", s.dir / "ollama",
                                   s.dir / "lmstudio", s.dir / "models-dir"});
  // Only refs, manifests and layers of a few bytes.
  CHECK(after - before < big.size() / 512 / 8);
}

TEST_CASE("E06 LM Studio finds models exactly two folders down, names unique",
          "[store][show][E06]") {
  Subject s;
  const Files files{{"Q4/model.gguf", "four"},
                    {"Q8/model.gguf", "eight"},
                    {"Q8/model-00001-of-00002.gguf", "one"},
                    {"Q8/model-00002-of-00002.gguf", "two"},
                    {"mmproj-F16.gguf", "projector"}};
  const auto snapshot = snapshot_of("org/Many", '2', files);
  REQUIRE(pull(*s.store, snapshot, files));
  REQUIRE(show(*s.store, ShowTarget::lmstudio, {snapshot, {}, {}, {}}, s.options));
  CHECK(paths_below(s.options.root) ==
        std::vector<std::string>{"org/Many/Q8-model.gguf", "org/Many/mmproj-F16.gguf",
                                 "org/Many/model-00001-of-00002.gguf",
                                 "org/Many/model-00002-of-00002.gguf", "org/Many/model.gguf"});
}

TEST_CASE("show gives Ollama a manifest whose layers are all there", "[store][show][ollama]") {
  Subject s;
  const auto report = show(*s.store, ShowTarget::ollama, s.subject, s.options);
  if (!report) FAIL(report.error().message);
  const auto text = read_file(s.options.root / "manifests/hf.co/org/Name/Q4_K_M");
  const auto manifest = boost::json::parse(text).as_object();
  CHECK(manifest.at("schemaVersion") == 2);
  CHECK(manifest.at("mediaType") == "application/vnd.docker.distribution.manifest.v2+json");
  std::vector<std::string> types;
  auto layers = manifest.at("layers").as_array();
  for (const auto& layer : layers) {
    types.emplace_back(layer.at("mediaType").as_string());
  }
  CHECK(types == std::vector<std::string>{"application/vnd.ollama.image.model",
                                          "application/vnd.ollama.image.template",
                                          "application/vnd.ollama.image.params",
                                          "application/vnd.ollama.image.license"});
  layers.push_back(manifest.at("config"));
  for (const auto& layer : layers) {
    std::string digest(layer.at("digest").as_string());
    digest.replace(digest.find(':'), 1, "-");
    const auto blob = read_file(s.options.root / "blobs" / digest);
    CHECK("sha256-" + sha(blob).hex() == digest);
    CHECK(layer.at("size") == blob.size());
  }
  const std::string config_digest(manifest.at("config").at("digest").as_string());
  const auto config = boost::json::parse(
      read_file(s.options.root / "blobs" / ("sha256-" + config_digest.substr(7))));
  CHECK(config.at("model_family") == "llama");
  CHECK(config.at("model_type") == "494.03M");
  CHECK(config.at("file_type") == "Q4_K_M");
}

TEST_CASE("show gives llama.cpp its old cache names", "[store][show][llamacpp]") {
  Subject s;
  REQUIRE(show(*s.store, ShowTarget::llamacpp, s.subject, s.options));
  CHECK(paths_below(s.options.root) ==
        std::vector<std::string>{"manifest=org=Name=Q4_K_M.json", "org_Name_Name-Q4_K_M.gguf"});
}

TEST_CASE("parameter_count_text prints as Ollama does", "[store][show][ollama]") {
  CHECK(parameter_count_text(7'615'616'512) == "7.6B");
  CHECK(parameter_count_text(70'000'000'000) == "70B");
  CHECK(parameter_count_text(494'032'768) == "494.03M");
  CHECK(parameter_count_text(12'000) == "12K");
  CHECK(parameter_count_text(999) == "999");
}

TEST_CASE("show never overwrites what it did not make and takes back what it began",
          "[store][show][S8]") {
  Subject s;
  write_file(s.options.root / "org/Name/Name-Q4_K_M.gguf", "somebody else's");
  const auto report = show(*s.store, ShowTarget::lmstudio, s.subject, s.options);
  REQUIRE_FALSE(report);
  CHECK(report.error().code == Errc::conflict);
  CHECK(read_file(s.options.root / "org/Name/Name-Q4_K_M.gguf") == "somebody else's");
  CHECK(list_links(*s.store)->empty());
}

TEST_CASE("show lives beside a real Hugging Face cache", "[store][show][huggingface]") {
  Subject s;
  const fs::path repo = s.options.root / "models--org--Name";
  write_file(repo / "blobs" / sha("weights").hex(), "weights");
  write_file(repo / "refs/main", std::string(40, '9'));
  const auto report = show(*s.store, ShowTarget::huggingface, s.subject, s.options);
  if (!report) FAIL(report.error().message);
  CHECK(report->already_there.size() == 2);
  CHECK(read_file(repo / "refs/main") == std::string(40, '9'));
  REQUIRE(hide(*s.store, report->link.id));
  CHECK(paths_below(s.options.root) ==
        std::vector<std::string>{"models--org--Name/blobs/" + sha("weights").hex(),
                                 "models--org--Name/refs/main"});
}

TEST_CASE("show twice changes nothing and mends what is gone", "[store][show]") {
  Subject s;
  const auto first = show(*s.store, ShowTarget::huggingface, s.subject, s.options);
  REQUIRE(first);
  const auto paths = paths_below(s.options.root);
  fs::remove(s.options.root / "models--org--Name/refs/main");
  CHECK(check_links(*s.store)->size() == 1);
  const auto second = show(*s.store, ShowTarget::huggingface, s.subject, s.options);
  REQUIRE(second);
  CHECK(second->link.id == first->link.id);
  CHECK(second->link.files == first->link.files);
  CHECK(paths_below(s.options.root) == paths);
  CHECK(check_links(*s.store)->empty());
}

TEST_CASE("E07 hide removes the links that were made, and check_links finds dead ones",
          "[store][show][E07]") {
  Subject s;
  s.options.form = LinkForm::symlink;
  const auto report = show(*s.store, ShowTarget::lmstudio, s.subject, s.options);
  REQUIRE(report);
  const auto file = s.options.root / "org/Name/Name-Q4_K_M.gguf";
  CHECK(fs::is_symlink(file));
  fs::remove(s.store->blob_path(sha("gguf")));
  const auto problems = check_links(*s.store);
  REQUIRE(problems->size() == 1);
  CHECK(problems->front().message == "a dead link");
  CHECK(hide(*s.store, report->link.id)->empty());
  CHECK(paths_below(s.options.root).empty());
  CHECK(list_links(*s.store)->empty());
  CHECK(hide(*s.store, report->link.id).error().code == Errc::not_found);
}

TEST_CASE("E07 a file system with hard links gets them before symbolic links",
          "[store][show][E07]") {
  Subject s;
  const auto report = show(*s.store, ShowTarget::models_dir, s.subject, s.options);
  REQUIRE(report);
  CHECK((report->choice.form == LinkForm::reflink || report->choice.form == LinkForm::hardlink));
  CHECK_FALSE(fs::is_symlink(s.options.root / "Name-Q4_K_M.gguf"));
}

TEST_CASE("hide leaves what somebody changed", "[store][show]") {
  Subject s;
  const auto report = show(*s.store, ShowTarget::models_dir, s.subject, s.options);
  REQUIRE(report);
  fs::remove(s.options.root / "Name-Q4_K_M.gguf");
  write_file(s.options.root / "Name-Q4_K_M.gguf", "mine now");
  const auto left = hide(*s.store, report->link.id);
  REQUIRE(left);
  CHECK(left->size() == 1);
  CHECK(read_file(s.options.root / "Name-Q4_K_M.gguf") == "mine now");
}

TEST_CASE("hide keeps files that another shown snapshot needs", "[store][show][huggingface]") {
  Subject s;
  const auto first = show(*s.store, ShowTarget::huggingface, s.subject, s.options);
  REQUIRE(first);
  auto other = s.subject;
  other.snapshot.commit = commit_of('2');
  other.variants.clear();
  other.revisions = {"dev"};
  REQUIRE(s.store->publish_snapshot(other.snapshot));
  REQUIRE(show(*s.store, ShowTarget::huggingface, other, s.options));
  REQUIRE(hide(*s.store, first->link.id));
  CHECK(check_links(*s.store)->empty());
  CHECK(read_file(s.options.root / "models--org--Name/snapshots" / std::string(40, '2') /
                  "sub/model.safetensors") == "weights");
}

TEST_CASE("E09 another volume is found out before anything is made, and the choice is explicit",
          "[store][show][E09]") {
  Subject s;
  FastDir memory;
  struct stat here {};
  struct stat there {};
  REQUIRE(stat(s.dir.path().c_str(), &here) == 0);
  REQUIRE(stat(memory.path().c_str(), &there) == 0);
  if (here.st_dev == there.st_dev) return; // one volume on this machine: nothing to show
  s.options.root = memory / "target";
  s.options.allow_symlink = false;
  const auto refused = choose_form(*s.store, s.options);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::unsupported);
  CHECK_FALSE(show(*s.store, ShowTarget::models_dir, s.subject, s.options));
  CHECK(paths_below(memory.path()).empty());
  s.options.allow_copy = true;
  CHECK(show(*s.store, ShowTarget::models_dir, s.subject, s.options)->choice.form ==
        LinkForm::copy);
  CHECK(read_file(s.options.root / "Name-Q4_K_M.gguf") == "gguf");
  s.options.allow_symlink = true;
  s.options.root = memory / "links";
  CHECK(show(*s.store, ShowTarget::models_dir, s.subject, s.options)->choice.form ==
        LinkForm::symlink);
}

TEST_CASE("a Hugging Face cache of a part of a commit lists what is missing", "[store][show][hf]") {
  Subject s;
  const auto repo = s.options.root / "models--org--Name";
  const auto tree = repo / "trees" / (s.subject.snapshot.commit.hex() + ".json");
  s.subject.listing = s.subject.snapshot.listing();
  const auto whole = show(*s.store, ShowTarget::huggingface, s.subject, s.options);
  REQUIRE(whole);
  CHECK_FALSE(whole->missing.any);
  CHECK_FALSE(fs::exists(tree)); // nothing depends on it

  const ListedFile gone{"b.safetensors", 7, git_id(pointer("weights")), sha("weights")};
  const ListedFile small{"README.md", 5, git_id("text\n"), {}};
  s.subject.listing.insert(s.subject.listing.begin(), {small, gone});
  const auto part = show(*s.store, ShowTarget::huggingface, s.subject, s.options);
  REQUIRE(part);
  CHECK(part->missing.files == 2);
  CHECK(part->missing.bytes == 12);
  const auto listed = boost::json::parse(read_file(tree)).at("files").as_object();
  CHECK(listed.size() == 4);
  CHECK(listed.at("README.md").as_object() ==
        boost::json::object{{"size", 5}, {"blob_id", git_id("text\n").hex()}});
  for (const char* large : {"b.safetensors", "sub/model.safetensors"}) {
    CHECK(listed.at(large).as_object() ==
          boost::json::object{{"size", 7},
                              {"blob_id", git_id(pointer("weights")).hex()},
                              {"lfs_sha256", sha("weights").hex()},
                              {"lfs_size", 7}});
  }
  CHECK_FALSE(fs::exists(repo / ".no_exist"));
  REQUIRE(hide(*s.store, part->link.id));
  CHECK_FALSE(fs::exists(repo));

  // One that the program made itself knows more than we do.
  write_file(tree, "{\"format_version\":1}");
  const auto beside = show(*s.store, ShowTarget::huggingface, s.subject, s.options);
  REQUIRE(beside);
  CHECK(beside->already_there == std::vector<std::string>{tree.string()});
  CHECK(read_file(tree) == "{\"format_version\":1}");
  CHECK(show(*s.store, ShowTarget::lmstudio, s.subject, s.options)->missing.any == false);
}

TEST_CASE("collect keeps what is shown elsewhere", "[store][show][gc]") {
  Subject s;
  const auto report = show(*s.store, ShowTarget::models_dir, s.subject, s.options);
  REQUIRE(report);
  CollectOptions options;
  options.grace = 0;
  options.size_target = 0;
  REQUIRE(collect(*s.store, options, nullptr));
  CHECK(s.store->list_variants()->size() == 1);
  CHECK(s.store->list_snapshots()->empty());
  REQUIRE(hide(*s.store, report->link.id));
  REQUIRE(collect(*s.store, options, nullptr));
  CHECK(s.store->list_variants()->empty());
}

TEST_CASE("E07 remove_model takes the links that were made for it along", "[store][show][E07]") {
  Subject s;
  REQUIRE(show(*s.store, ShowTarget::huggingface, s.subject, s.options));
  const auto report = remove_model(*s.store, RepoId{"org/Name"}, commit_of('1'), false);
  if (!report) FAIL(report.error().message);
  CHECK(report->hidden.size() == 1);
  CHECK(paths_below(s.options.root).empty());
  CHECK(s.store->list_snapshots()->empty());
  CHECK(s.store->list_variants()->empty());
  CHECK(remove_model(*s.store, RepoId{"org/Name"}, commit_of('1'), false).error().code ==
        Errc::not_found);
}

TEST_CASE("E12 remove_model answers who uses it, unless forced", "[store][E12]") {
  Subject s;
  LeaseHolder holder;
  holder.connection = 1;
  REQUIRE(s.store->grant_lease(sha("gguf"), holder, 0, "llama-server"));
  const auto refused = remove_model(*s.store, RepoId{"org/Name"}, commit_of('1'), false);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::conflict);
  CHECK(refused.error().message.find("llama-server") != std::string::npos);
  REQUIRE(remove_model(*s.store, RepoId{"org/Name"}, commit_of('1'), true));
  CHECK(*s.store->find_blob(sha("gguf")));
}

TEST_CASE("show survives a kill at any change", "[store][show][crash]") {
  bool finished = false;
  for (int point = 0; !finished; ++point) {
    FastDir dir;
    const Files files{{"Name-Q8_0.gguf", "gguf"}};
    const ShowSubject subject{snapshot_of("org/Name", '1', files), {}, {"main"}, {}};
    ShowOptions options;
    options.root = dir / "target";
    {
      const auto store = open_store(dir / "root");
      REQUIRE(pull(*store, subject.snapshot, files));
    }
    const int status = in_child([&] {
      CrashWatcher watcher(dir / "spare", point, Loss::all);
      auto store = Store::open(dir / "root", small_options(&watcher));
      if (!store) _exit(4);
      const auto report = show(**store, ShowTarget::huggingface, subject, options);
      if (!report || !hide(**store, report->link.id)) _exit(5);
    });
    finished = status == 0;
    INFO("point " << point);
    REQUIRE((finished || status == CrashWatcher::k_exit));
    const auto store = open_store(dir / "root");
    check_invariants(*store);
    const auto report = show(*store, ShowTarget::huggingface, subject, options);
    if (!report) FAIL(report.error().message);
    CHECK(check_links(*store)->empty());
    CHECK(hide(*store, report->link.id)->empty());
    CHECK(paths_below(options.root).empty());
  }
}
