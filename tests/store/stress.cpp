// SPDX-License-Identifier: Apache-2.0
#include "store/collect.hpp"
#include "store/fsck.hpp"
#include "store/quarantine.hpp"
#include "store/store.hpp"
#include "tests/store/faults.hpp"
#include "validate/sha256.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

// Random histories against a simple model in memory, shrunk on failure; and real kills at random
// moments of the same work; and the same from several threads.
//   store_stress [--at-once N] [--steps N] [--kills N] [--seed N]

using namespace modeld;
using namespace modeld::store;
using modeld::test::FastDir;
namespace fs = std::filesystem;

namespace {

enum class Kind {
  pull,
  build,
  pin,
  unpin,
  lease,
  release,
  remove,
  unbuild,
  gc,
  shrink,
  harm,
  restart
};
constexpr int k_kinds = 12;
constexpr unsigned k_repos = 4;
constexpr unsigned k_commits = 3;

struct Op {
  Kind kind;
  unsigned a;
  unsigned b;
};

std::string describe(const Op& op) {
  constexpr const char* k_names[] = {"pull",   "build",   "pin", "unpin",  "lease", "release",
                                     "remove", "unbuild", "gc",  "shrink", "harm",  "restart"};
  return fmt::format("{}({},{})", k_names[static_cast<int>(op.kind)], op.a, op.b);
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

StoreOptions small_options() {
  StoreOptions options;
  options.min_free = 0;
  options.reserve_file = 0;
  return options;
}

using Files = std::map<std::string, std::string>;

/// Commits share a file with others of the same repository, and one with all.
Files files_of(unsigned repo, unsigned commit) {
  return {{"LICENSE", "the same everywhere"},
          {"config.json", fmt::format("config of {}", repo)},
          {"sub/weights", fmt::format("weights of {} at {}", repo, commit)}};
}

RepoId repo_id(unsigned repo) {
  return RepoId{repo == 0 ? "alone" : fmt::format("org/model-{}", repo)};
}

Snapshot snapshot_of(unsigned repo, unsigned commit) {
  Snapshot snapshot{repo_id(repo), *GitOid::parse(std::string(40, "0123456789"[commit % 10])), {}};
  for (const auto& [path, text] : files_of(repo, commit)) {
    snapshot.files.push_back({path, text.size(), validate::git_blob_id(bytes_of(text)),
                              validate::sha256_of(bytes_of(text))});
  }
  return snapshot;
}

std::string gguf_of(unsigned repo, unsigned commit) {
  return fmt::format("gguf of {} at {}", repo, commit);
}

Variant variant_of(unsigned repo, unsigned commit) {
  const auto snapshot = snapshot_of(repo, commit);
  const auto recipe = *Recipe::parse_target("Q4_K_M");
  const auto inputs = variant_inputs(snapshot, recipe);
  const std::string bytes = gguf_of(repo, commit);
  Variant variant;
  variant.key = variant_key(inputs);
  variant.repo = snapshot.repo;
  variant.commit = snapshot.commit;
  variant.recipe = inputs.recipe;
  variant.converter = inputs.converter;
  variant.sources = inputs.sources;
  variant.result = validate::sha256_of(bytes_of(bytes));
  variant.size = bytes.size();
  variant.file_name = variant_file_name(snapshot, recipe, variant.key);
  variant.added = 1;
  return variant;
}

Result<void> ingest(Store& store, const std::string& text, std::string job = {}) {
  Expected expected;
  expected.job = std::move(job);
  MODELD_ASSIGN(auto ingest, store.begin_ingest(std::move(expected)));
  MODELD_TRY(ingest->write(bytes_of(text)));
  MODELD_TRY(ingest->commit());
  return {};
}

std::string name_of(unsigned repo, unsigned commit) {
  return fmt::format("{}@{}", repo, commit);
}

/// What has to be true, and the store beside it.
class History {
public:
  explicit History(fs::path root) : root_(std::move(root)) { open(); }

  /// What went wrong; nothing where all is as the model says.
  std::optional<std::string> run(const Op& op) {
    const unsigned repo = op.a % k_repos;
    const unsigned commit = op.b % k_commits;
    auto wrong = apply(op.kind, repo, commit);
    if (!wrong) wrong = compare();
    return wrong;
  }

  std::optional<std::string> deep_check() {
    const auto report = fsck(*store_, {false, true}, nullptr);
    if (!report) return report.error().message;
    if (report->clean()) return std::nullopt;
    const auto& first = report->findings.front();
    return fmt::format("{} {}: {}", first.id, first.path, first.message);
  }

private:
  void open() {
    store_.reset();
    auto opened = Store::open(root_, small_options());
    if (!opened) {
      std::fprintf(stderr, "%s\n", opened.error().message.c_str());
      std::abort();
    }
    store_ = std::move(*opened);
  }

  static std::optional<std::string> expect(const Result<void>& done, bool good) {
    if (done.has_value() == good) return std::nullopt;
    return done ? "it worked and should not have" : done.error().message;
  }

  std::optional<std::string> apply(Kind kind, unsigned repo, unsigned commit) {
    const std::string name = name_of(repo, commit);
    const auto snapshot = snapshot_of(repo, commit);
    const auto variant = variant_of(repo, commit);
    switch (kind) {
    case Kind::pull:
      return pull(repo, commit);
    case Kind::build:
      return build(repo, commit);
    case Kind::pin: {
      const auto done = store_->put_pin(
          {"pin-" + std::to_string(repo), snapshot.repo, snapshot.commit, {variant.recipe}, 0, 1});
      if (snapshots_.contains(name)) pins_["pin-" + std::to_string(repo)] = name;
      return expect(done, snapshots_.contains(name));
    }
    case Kind::unpin: {
      const bool there = pins_.erase("pin-" + std::to_string(repo)) > 0;
      return expect(store_->delete_pin("pin-" + std::to_string(repo)), there);
    }
    case Kind::lease:
      return lease(repo, commit);
    case Kind::release:
      store_->release_connection(repo + 1);
      leases_.erase(repo + 1);
      return std::nullopt;
    case Kind::remove: {
      const bool may = snapshots_.contains(name) && !is_pinned(name);
      if (may) snapshots_.erase(name);
      return expect(store_->remove_snapshot(snapshot.repo, snapshot.commit), may);
    }
    case Kind::unbuild: {
      const bool there = variants_.erase(name) > 0;
      return expect(store_->remove_variant(variant.key), there);
    }
    case Kind::gc:
      return gc(std::nullopt);
    case Kind::shrink:
      return gc(std::uint64_t{repo} * 60);
    case Kind::harm:
      return harm(repo, commit);
    default:
      leases_.clear();
      open();
      return std::nullopt;
    }
  }

  std::optional<std::string> pull(unsigned repo, unsigned commit) {
    for (const auto& [path, text] : files_of(repo, commit)) {
      if (auto done = ingest(*store_, text); !done) return done.error().message;
    }
    snapshots_.insert(name_of(repo, commit));
    return expect(store_->publish_snapshot(snapshot_of(repo, commit)), true);
  }

  std::optional<std::string> build(unsigned repo, unsigned commit) {
    if (auto done = ingest(*store_, gguf_of(repo, commit)); !done) return done.error().message;
    variants_.insert(name_of(repo, commit));
    return expect(store_->publish_variant(variant_of(repo, commit)), true);
  }

  std::optional<std::string> lease(unsigned repo, unsigned commit) {
    const auto blob = variant_of(repo, commit).result;
    LeaseHolder holder;
    holder.connection = repo + 1;
    const auto granted = store_->grant_lease(blob, holder, 0, "stress");
    const auto there = store_->find_blob(blob);
    if (!there) return there.error().message;
    if (granted.has_value() != there->has_value()) return "a lease without its blob";
    if (granted) leases_[repo + 1].insert(blob);
    return std::nullopt;
  }

  /// Somebody damages a stored file; a scrub finds it; fetching it again heals.
  std::optional<std::string> harm(unsigned repo, unsigned commit) {
    if (!snapshots_.contains(name_of(repo, commit))) return std::nullopt;
    const std::string text = fmt::format("weights of {} at {}", repo, commit);
    const auto digest = validate::sha256_of(bytes_of(text));
    const auto path = store_->blob_path(digest);
    fs::permissions(path, fs::perms::owner_all);
    std::ofstream(path) << "damaged";
    const auto report = scrub(*store_, {}, nullptr);
    if (!report) return report.error().message;
    if (report->damaged.size() != 1) return "scrub did not find the damage";
    if (store_->find_snapshot(snapshot_of(repo, commit).repo, snapshot_of(repo, commit).commit)) {
      return "a damaged snapshot is served";
    }
    return expect(ingest(*store_, text), true);
  }

  std::optional<std::string> gc(std::optional<std::uint64_t> size_target) {
    CollectOptions options;
    options.grace = 0;
    options.size_target = size_target;
    const auto plan = collect(*store_, options, nullptr);
    if (!plan) return plan.error().message;
    for (const CollectItem& item : plan->items) {
      if (!item.goes()) continue;
      if (item.kind == CollectItem::Kind::snapshot) drop(snapshots_, item);
      if (item.kind == CollectItem::Kind::variant) drop(variants_, item);
      if (item.kind == CollectItem::Kind::blob && is_leased(*item.digest))
        return "a leased blob went";
    }
    if (!size_target && removed_ > 0) return "a collection without a target took something listed";
    for (const auto& [pin, name] : pins_) {
      if (!snapshots_.contains(name)) return "a pinned snapshot went";
    }
    removed_ = 0;
    return std::nullopt;
  }

  void drop(std::set<std::string>& from, const CollectItem& item) {
    std::erase_if(from, [&item](const std::string& name) {
      const auto at = name.find('@');
      const auto snapshot = snapshot_of(static_cast<unsigned>(std::stoul(name.substr(0, at))),
                                        static_cast<unsigned>(std::stoul(name.substr(at + 1))));
      return snapshot.repo == item.repo && snapshot.commit == item.commit;
    });
    ++removed_;
  }

  bool is_pinned(const std::string& name) const {
    return std::any_of(pins_.begin(), pins_.end(),
                       [&name](const auto& pin) { return pin.second == name; });
  }

  bool is_leased(const Sha256Digest& digest) const {
    return std::any_of(leases_.begin(), leases_.end(),
                       [&digest](const auto& lease) { return lease.second.contains(digest); });
  }

  std::optional<std::string> compare() {
    const auto list = store_->list_snapshots();
    const auto variants = store_->list_variants();
    const auto pins = store_->list_pins();
    if (!list || !variants || !pins) return "a list failed";
    if (list->size() != snapshots_.size()) {
      return fmt::format("{} snapshots, expected {}", list->size(), snapshots_.size());
    }
    if (variants->size() != variants_.size()) {
      return fmt::format("{} variants, expected {}", variants->size(), variants_.size());
    }
    if (pins->size() != pins_.size()) {
      return fmt::format("{} pins, expected {}", pins->size(), pins_.size());
    }
    for (const auto& info : *list) {
      const auto snapshot = store_->find_snapshot(info.repo, info.commit);
      if (!snapshot) return snapshot.error().message;
      if (!*snapshot) return "a listed snapshot is not there";
      for (const auto& file : (*snapshot)->files) {
        std::error_code ec;
        const auto shown = store_->snapshot_folder(info.repo, info.commit) / file.path;
        if (fs::file_size(shown, ec) != file.size) return "a view lacks " + shown.string();
      }
    }
    for (const auto& variant : *variants) {
      std::error_code ec;
      if (fs::file_size(store_->variant_path(variant), ec) != variant.size) {
        return "a variant is not shown: " + variant.file_name;
      }
    }
    return std::nullopt;
  }

  fs::path root_;
  std::unique_ptr<Store> store_;
  std::set<std::string> snapshots_;
  std::set<std::string> variants_;
  std::map<std::string, std::string> pins_; ///< to the snapshot's name
  std::map<unsigned, std::set<Sha256Digest>> leases_;
  int removed_ = 0;
};

std::vector<Op> random_ops(std::mt19937_64& random, std::size_t count) {
  std::vector<Op> ops;
  for (std::size_t i = 0; i < count; ++i) {
    ops.push_back({static_cast<Kind>(random() % k_kinds), static_cast<unsigned>(random() % k_repos),
                   static_cast<unsigned>(random() % k_commits)});
  }
  return ops;
}

std::optional<std::string> run_history(const std::vector<Op>& ops) {
  FastDir dir;
  History history(dir / "root");
  for (std::size_t i = 0; i < ops.size(); ++i) {
    auto wrong = history.run(ops[i]);
    if (!wrong && i % 100 == 99) wrong = history.deep_check();
    if (wrong) return fmt::format("after step {} {}: {}", i, describe(ops[i]), *wrong);
  }
  return history.deep_check();
}

/// Leaves out ever smaller parts, as long as it still fails.
std::vector<Op> shrink(std::vector<Op> ops) {
  for (std::size_t part = ops.size() / 2; part > 0; part /= 2) {
    for (std::size_t at = 0; at + part <= ops.size();) {
      auto fewer = ops;
      const auto begin = fewer.begin() + static_cast<std::ptrdiff_t>(at);
      fewer.erase(begin, begin + static_cast<std::ptrdiff_t>(part));
      if (run_history(fewer)) {
        ops = std::move(fewer);
      } else {
        at += part;
      }
    }
  }
  return ops;
}

int run_steps(std::uint64_t seed, std::uint64_t steps) {
  constexpr std::size_t k_length = 500;
  std::mt19937_64 random(seed);
  for (std::uint64_t done = 0; done < steps; done += k_length) {
    const auto ops = random_ops(random, k_length);
    if (!run_history(ops)) continue;
    const auto fewest = shrink(ops);
    std::fprintf(stderr, "seed %llu: %s\nsmallest history:\n",
                 static_cast<unsigned long long>(seed), run_history(fewest)->c_str());
    for (const Op& op : fewest) {
      std::fprintf(stderr, "  %s\n", describe(op).c_str());
    }
    return 1;
  }
  std::printf("%llu steps, no difference\n", static_cast<unsigned long long>(steps));
  return 0;
}

/// Damage that a kill may not do. Manifests and files without rows are what it may leave.
bool is_forbidden(const FsckFinding& finding) {
  // Of a snapshot whose row went; a variant keeps the folder.
  if (finding.id == "FS-17") return finding.message != "no longer part of it";
  constexpr std::string_view k_allowed[] = {"FS-03", "FS-13", "FS-18", "FS-22", "FS-24",
                                            "FS-25", "FS-26", "FS-27", "FS-28"};
  return std::find(std::begin(k_allowed), std::end(k_allowed), finding.id) == std::end(k_allowed);
}

/// What is known of a store that a killed process leaves: what it acknowledged must be there, what
/// it was about to change may be either way.
class Acknowledged {
public:
  enum class Is { unknown, there, gone };

  /// Lines that a worker writes: "?" before a change, "+" or "-" when it is done, "=" when it was
  /// refused, then the thing ("snapshot 1@2", "variant 1@2", "pin"); "?all" before a collection.
  void read(std::string_view lines) {
    while (!lines.empty()) {
      const auto end = lines.find('\n');
      if (end == std::string_view::npos) return; // it was killed in the middle of a line
      const std::string thing(lines.substr(1, end - 1));
      const char mark = lines.front();
      if (mark == '?' && thing == "all") {
        doubt_all();
      } else if (mark == '?') {
        before_ = std::exchange(things_[thing], Is::unknown);
      } else {
        things_[thing] = mark == '+' ? Is::there : mark == '-' ? Is::gone : before_;
      }
      lines.remove_prefix(end + 1);
    }
  }

  std::optional<std::string> compare(const std::set<std::string>& found) const {
    for (const auto& [thing, is] : things_) {
      if (is == Is::there && !found.contains(thing)) return thing + " was acknowledged and is lost";
      if (is == Is::gone && found.contains(thing)) return thing + " was removed and is back";
    }
    return std::nullopt;
  }

  /// From here on everything is certain again.
  void settle(const std::set<std::string>& found) {
    things_.clear();
    for (const std::string& thing : found) {
      things_[thing] = Is::there;
    }
  }

private:
  void doubt_all() {
    for (auto& [thing, is] : things_) {
      if (is == Is::there && thing != "pin") is = Is::unknown;
    }
  }

  std::map<std::string, Is> things_;
  Is before_ = Is::unknown; ///< of the thing that a change is about
};

/// By the names that Acknowledged uses.
std::set<std::string> things_in(Store& store) {
  std::set<std::string> found;
  const auto snapshots = store.list_snapshots();
  const auto variants = store.list_variants();
  const auto pins = store.list_pins();
  if (!snapshots || !variants || !pins) std::abort();
  const auto add = [&found](const std::string& kind, const auto& one) {
    const auto repo = one.repo.text == "alone" ? '0' : one.repo.text.back();
    found.insert(fmt::format("{} {}@{}", kind, repo, one.commit.hex().front()));
  };
  for (const auto& one : *snapshots) {
    add("snapshot", one);
  }
  for (const auto& one : *variants) {
    add("variant", one);
  }
  if (!pins->empty()) found.insert("pin");
  return found;
}

std::set<std::string> all_things() {
  std::set<std::string> things{"pin"};
  for (unsigned repo = 0; repo < k_repos; ++repo) {
    for (unsigned commit = 0; commit < k_commits; ++commit) {
      things.insert("snapshot " + name_of(repo, commit));
      things.insert("variant " + name_of(repo, commit));
    }
  }
  return things;
}

std::optional<std::string> check_after_kill(const fs::path& root, Acknowledged& acknowledged) {
  const auto store = Store::open(root, small_options());
  if (!store) return store.error().message;
  // Before fsck, which may take in what was written but not acknowledged.
  if (auto wrong = acknowledged.compare(things_in(**store))) return wrong;
  const auto first = fsck(**store, {true, true}, nullptr);
  if (!first) return first.error().message;
  for (const auto& finding : first->findings) {
    if (is_forbidden(finding)) {
      return fmt::format("{} {}: {}", finding.id, finding.path, finding.message);
    }
  }
  const auto second = fsck(**store, {false, true}, nullptr);
  if (!second) return second.error().message;
  if (!second->clean()) return "not clean after repair: " + second->findings.front().message;
  acknowledged.settle(things_in(**store));
  return std::nullopt;
}

/// Mixed work in a process of its own, which tells through a pipe what it is about to do and what
/// it has done.
class Victim {
public:
  Victim(Store& store, int told) : store_(store), told_(told) {}

  void run(const Op& op) {
    const std::string name = name_of(op.a, op.b);
    const auto snapshot = snapshot_of(op.a, op.b);
    switch (op.kind) {
    case Kind::pull:
    case Kind::harm:
      return change("snapshot " + name, '+', [&]() -> Result<void> {
        for (const auto& [path, text] : files_of(op.a, op.b)) {
          MODELD_TRY(ingest(store_, text));
        }
        return store_.publish_snapshot(snapshot);
      });
    case Kind::build:
    case Kind::lease:
      return change("variant " + name, '+', [&]() -> Result<void> {
        MODELD_TRY(ingest(store_, gguf_of(op.a, op.b)));
        return store_.publish_variant(variant_of(op.a, op.b));
      });
    case Kind::pin:
      return change("pin", '+', [&] {
        return store_.put_pin({"pin", snapshot.repo, snapshot.commit, {}, 0, 1});
      });
    case Kind::unpin:
    case Kind::release:
      return change("pin", '-', [&] { return store_.delete_pin("pin"); });
    case Kind::remove:
      return change("snapshot " + name, '-',
                    [&] { return store_.remove_snapshot(snapshot.repo, snapshot.commit); });
    case Kind::unbuild:
      return change("variant " + name, '-',
                    [&] { return store_.remove_variant(variant_of(op.a, op.b).key); });
    case Kind::restart:
      if (!store_.record_ref({snapshot.repo, "main", snapshot.commit, snapshot.repo, 1})) _exit(3);
      return;
    default:
      return collect_all(op.kind == Kind::shrink);
    }
  }

private:
  void tell(char mark, const std::string& thing) const {
    const std::string line = mark + thing + '\n';
    if (write(told_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) _exit(4);
  }

  template <class Call>
  void change(const std::string& thing, char done, Call call) const {
    tell('?', thing);
    const Result<void> result = call();
    tell(result ? done : '=', thing);
  }

  void collect_all(bool to_size) const {
    CollectOptions options;
    options.grace = 0;
    if (to_size) {
      options.size_target = 100;
      tell('?', "all");
    }
    if (!collect(store_, options, nullptr)) _exit(2);
    const auto left = things_in(store_);
    for (const std::string& thing : all_things()) {
      tell(left.contains(thing) ? '+' : '-', thing);
    }
  }

  Store& store_;
  int told_;
};

std::string read_all(int from) {
  std::string text;
  std::array<char, 4096> part{};
  for (;;) {
    const ssize_t n = read(from, part.data(), part.size());
    if (n <= 0) return text;
    text.append(part.data(), static_cast<std::size_t>(n));
  }
}

/// What a victim said until it was killed, at a random moment; nothing where it ended by itself
/// with an error.
std::optional<std::string> kill_one(const fs::path& root, std::mt19937_64& random) {
  const auto ops = random_ops(random, 2000);
  std::array<int, 2> pipe_ends{};
  if (pipe(pipe_ends.data()) != 0) std::abort();
  // So that no line waits for us: 2,000 steps say less.
  fcntl(pipe_ends[1], F_SETPIPE_SZ, 1 << 20);
  const pid_t child = fork();
  if (child == 0) {
    auto store = Store::open(root, small_options());
    if (!store) _exit(1);
    Victim victim(**store, pipe_ends[1]);
    for (const Op& op : ops) {
      victim.run(op);
    }
    _exit(0);
  }
  close(pipe_ends[1]);
  usleep(static_cast<useconds_t>(random() % 60'000));
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  std::string said = read_all(pipe_ends[0]);
  close(pipe_ends[0]);
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0) return std::nullopt;
  return said;
}

int run_kills(std::uint64_t seed, std::uint64_t kills) {
  std::mt19937_64 random(seed);
  FastDir dir;
  Acknowledged acknowledged;
  std::uint64_t lines = 0;
  for (std::uint64_t i = 0; i < kills; ++i) {
    const auto said = kill_one(dir / "root", random);
    std::optional<std::string> wrong("the work itself failed");
    if (said) {
      acknowledged.read(*said);
      lines += static_cast<std::uint64_t>(std::count(said->begin(), said->end(), '\n'));
      wrong = check_after_kill(dir / "root", acknowledged);
    }
    if (wrong) {
      std::fprintf(stderr, "seed %llu, kill %llu: %s\n", static_cast<unsigned long long>(seed),
                   static_cast<unsigned long long>(i), wrong->c_str());
      return 1;
    }
  }
  std::printf("%llu kills, nothing lost of what %llu lines acknowledged\n",
              static_cast<unsigned long long>(kills), static_cast<unsigned long long>(lines));
  return 0;
}

/// One step of many at once on one store, whatever the others do.
Result<void> step_among_others(Store& store, const Op& op, std::uint64_t connection) {
  const auto snapshot = snapshot_of(op.a, op.b);
  const auto variant = variant_of(op.a, op.b);
  CollectOptions options;
  options.grace = 0;
  if (op.kind == Kind::shrink) options.size_target = 100;
  LeaseHolder holder;
  holder.connection = connection;
  switch (op.kind) {
  case Kind::pull:
    for (const auto& [path, text] : files_of(op.a, op.b)) {
      MODELD_TRY(ingest(store, text));
    }
    return store.publish_snapshot(snapshot);
  case Kind::build:
    MODELD_TRY(ingest(store, gguf_of(op.a, op.b)));
    return store.publish_variant(variant);
  case Kind::pin:
    return store.put_pin({"pin", snapshot.repo, snapshot.commit, {variant.recipe}, 0, 1});
  case Kind::unpin:
    return store.delete_pin("pin");
  case Kind::lease:
    MODELD_TRY(store.grant_lease(variant.result, holder, 0, "stress"));
    return {};
  case Kind::release:
    store.release_connection(connection);
    return {};
  case Kind::remove:
    return store.remove_snapshot(snapshot.repo, snapshot.commit);
  case Kind::unbuild:
    return store.remove_variant(variant.key);
  case Kind::harm:
    MODELD_TRY(scrub(store, {}, nullptr));
    MODELD_TRY(fsck(store, {}, nullptr));
    return {};
  case Kind::restart:
    MODELD_TRY(store.find_snapshot(snapshot.repo, snapshot.commit));
    MODELD_TRY(store.find_variant(snapshot.repo, snapshot.commit, variant.recipe));
    MODELD_TRY(store.list_snapshots());
    return store.record_ref({snapshot.repo, "main", snapshot.commit, snapshot.repo, 1});
  default:
    MODELD_TRY(collect(store, options, nullptr));
    return {};
  }
}

/// What one may find when others were quicker.
bool is_lost_race(const Error& error) {
  return error.code == Errc::not_found || error.code == Errc::conflict || error.code == Errc::busy;
}

/// The same mix from several threads; at the end fsck finds nothing. Meant for the thread
/// sanitizer.
int run_threads(std::uint64_t seed, std::uint64_t steps) {
  constexpr unsigned k_threads = 4;
  FastDir dir;
  auto store = Store::open(dir / "root", small_options());
  if (!store) std::abort();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < k_threads; ++i) {
    threads.emplace_back([&, i] {
      std::mt19937_64 random(seed + i);
      for (const Op& op : random_ops(random, steps / k_threads)) {
        const auto done = step_among_others(**store, op, i + 1);
        if (done || is_lost_race(done.error())) continue;
        std::fprintf(stderr, "%s: %s\n", describe(op).c_str(), done.error().message.c_str());
        ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  const auto report = fsck(**store, {false, true}, nullptr);
  if (!report) return 1;
  for (const FsckFinding& finding : report->findings) {
    std::fprintf(stderr, "%s %s: %s\n", std::string(finding.id).c_str(), finding.path.c_str(),
                 finding.message.c_str());
    ++wrong;
  }
  std::printf("%llu steps of %u threads, %d wrong\n", static_cast<unsigned long long>(steps),
              k_threads, wrong.load());
  return wrong == 0 ? 0 : 1;
}

std::uint64_t number_after(int argc, char** argv, std::string_view name, std::uint64_t fallback) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (name != argv[i]) continue;
    const std::string_view text(argv[i + 1]);
    std::uint64_t value = 0;
    const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (bad == std::errc() && end == text.data() + text.size()) return value;
  }
  return fallback;
}

} // namespace

int main(int argc, char** argv) {
  const std::uint64_t seed = number_after(argc, argv, "--seed", 1);
  const std::uint64_t at_once = number_after(argc, argv, "--at-once", 4'000);
  if (at_once > 0 && run_threads(seed, at_once) != 0) return 1;
  const int wrong = run_steps(seed, number_after(argc, argv, "--steps", 100'000));
  return wrong != 0 ? wrong : run_kills(seed, number_after(argc, argv, "--kills", 1'000));
}
