// SPDX-License-Identifier: Apache-2.0
#include "store/collect.hpp"
#include "store/store.hpp"
#include "validate/sha256.hpp"

#include <fmt/format.h>

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

// The store's speed: a stream through an ingest against SHA-256 alone; a large store's start, list
// and collection plan; look-ups of a built variant from many threads.
//   bench_store [FOLDER] [SNAPSHOTS]    FOLDER: where to make the stores; default /dev/shm
//   bench_store --make ROOT SNAPSHOTS   only makes the large store, and leaves it there

using namespace modeld;
using namespace modeld::store;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

namespace {

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

template <class T>
T must(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "error: %s\n", result.error().message.c_str());
    std::exit(1);
  }
  return std::move(*result);
}

void must(const Result<void>& result) {
  if (result) return;
  std::fprintf(stderr, "error: %s\n", result.error().message.c_str());
  std::exit(1);
}

std::unique_ptr<Store> open_store(const fs::path& root) {
  StoreOptions options;
  options.min_free = 0;
  options.reserve_file = 0;
  return must(Store::open(root, options));
}

void bench_ingest(const fs::path& folder) {
  constexpr std::size_t k_part = 1U << 20;
  constexpr std::uint64_t k_parts = 1024;
  std::vector<std::byte> part(k_part);
  for (std::size_t i = 0; i < part.size(); ++i) {
    part[i] = static_cast<std::byte>(i * 2654435761U >> 13);
  }
  validate::Sha256 hash;
  auto start = Clock::now();
  for (std::uint64_t i = 0; i < k_parts; ++i) {
    hash.update(part);
  }
  const auto digest = hash.finish();
  const double hashing = seconds_since(start);
  const auto store = open_store(folder / "ingest");
  Expected expected;
  expected.size = k_part * k_parts;
  expected.sha256 = digest;
  auto ingest = must(store->begin_ingest(expected));
  start = Clock::now();
  for (std::uint64_t i = 0; i < k_parts; ++i) {
    must(ingest->write(part));
  }
  must(ingest->commit());
  const double storing = seconds_since(start);
  std::printf("ingest of a 1 GiB stream     %6.2f GB/s, SHA-256 alone %6.2f GB/s, ratio %.2f\n",
              1.0737 / storing, 1.0737 / hashing, hashing / storing);
}

Snapshot fill_snapshot(Store& store, unsigned number, unsigned files) {
  Snapshot snapshot;
  snapshot.repo = RepoId{fmt::format("org-{}/model-{}", number % 100, number)};
  snapshot.commit = *GitOid::parse(fmt::format("{:040x}", number));
  for (unsigned i = 0; i < files; ++i) {
    const std::string text = fmt::format("file {} of {}", i, number);
    auto ingest = must(store.begin_ingest({}));
    must(ingest->write(std::as_bytes(std::span(text))));
    const auto blob = must(ingest->commit());
    snapshot.files.push_back({fmt::format("file-{:02}", i), blob.size, *blob.git_oid, blob.sha256});
  }
  must(store.publish_snapshot(snapshot));
  must(store.record_ref({snapshot.repo, "main", snapshot.commit, snapshot.repo, 1}));
  return snapshot;
}

Variant build(Store& store, const Snapshot& snapshot) {
  const auto recipe = must(Recipe::parse_target("Q4_K_M"));
  const auto inputs = variant_inputs(snapshot, recipe);
  Variant variant;
  variant.key = variant_key(inputs);
  variant.repo = snapshot.repo;
  variant.commit = snapshot.commit;
  variant.recipe = inputs.recipe;
  variant.converter = inputs.converter;
  variant.sources = inputs.sources;
  variant.result = snapshot.files[0].sha256;
  variant.size = snapshot.files[0].size;
  variant.file_name = variant_file_name(snapshot, recipe, variant.key);
  variant.added = 1;
  must(store.publish_variant(variant));
  return variant;
}

void bench_lookups(const Store& store, const Variant& variant) {
  constexpr unsigned k_clients = 1000;
  constexpr unsigned k_asks = 20;
  std::vector<std::vector<double>> times(k_clients);
  std::vector<std::thread> clients;
  const auto start = Clock::now();
  for (unsigned c = 0; c < k_clients; ++c) {
    clients.emplace_back([&, c] {
      for (unsigned i = 0; i < k_asks; ++i) {
        const auto asked = Clock::now();
        const auto found = store.find_variant(variant.repo, variant.commit, variant.recipe);
        if (!found || !*found) std::abort();
        times[c].push_back(seconds_since(asked));
      }
    });
  }
  for (auto& client : clients) {
    client.join();
  }
  const double wall = seconds_since(start);
  std::vector<double> all;
  for (const auto& some : times) {
    all.insert(all.end(), some.begin(), some.end());
  }
  std::sort(all.begin(), all.end());
  std::printf("path of a built variant      p50 %.1f us, p99 %.1f us, %.0f a second (%u threads)\n",
              all[all.size() / 2] * 1e6, all[all.size() * 99 / 100] * 1e6,
              static_cast<double>(all.size()) / wall, k_clients);
}

/// The variant that is built in it.
Variant make_large(const fs::path& root, unsigned snapshots) {
  constexpr unsigned k_files = 10;
  Variant variant;
  const auto start = Clock::now();
  const auto store = open_store(root);
  for (unsigned i = 0; i < snapshots; ++i) {
    const auto snapshot = fill_snapshot(*store, i, k_files);
    if (i == snapshots / 2) variant = build(*store, snapshot);
  }
  std::printf("%u blobs, %u snapshots made in %.1f s\n", snapshots * k_files, snapshots,
              seconds_since(start));
  return variant;
}

void bench_large(const fs::path& folder, unsigned snapshots) {
  const Variant variant = make_large(folder / "large", snapshots);
  auto start = Clock::now();
  const auto store = open_store(folder / "large");
  std::printf("start                        %8.1f ms\n", seconds_since(start) * 1e3);
  start = Clock::now();
  const auto list = must(store->list_snapshots());
  std::printf("list of %6zu snapshots     %8.1f ms\n", list.size(), seconds_since(start) * 1e3);
  CollectOptions options;
  options.grace = 0;
  options.size_target = 1000;
  for (const bool keeps : {false, true}) {
    if (keeps) options.size_target.reset();
    start = Clock::now();
    const double processor = processor_seconds();
    const auto plan = must(plan_collection(*store, options));
    std::printf("plan that %s   %8.1f ms, %8.1f ms of processor time, %zu items\n",
                keeps ? "keeps all    " : "takes nearly all", seconds_since(start) * 1e3,
                (processor_seconds() - processor) * 1e3, plan.items.size());
  }
  constexpr unsigned k_asks = 10'000;
  start = Clock::now();
  for (unsigned i = 0; i < k_asks; ++i) {
    const auto found = must(store->find_variant(variant.repo, variant.commit, variant.recipe));
    if (!found) std::abort();
  }
  std::printf("one look-up of a variant     %8.1f us\n", seconds_since(start) / k_asks * 1e6);
  bench_lookups(*store, variant);
}

} // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == "--make") {
    make_large(argv[2], static_cast<unsigned>(std::atoi(argv[3])));
    return 0;
  }
  std::string name = std::string(argc > 1 ? argv[1] : "/dev/shm") + "/modeld-bench-XXXXXX";
  if (mkdtemp(name.data()) == nullptr) {
    std::fprintf(stderr, "error: cannot make '%s'\n", name.c_str());
    return 1;
  }
  const unsigned snapshots = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 10'000;
  bench_ingest(name);
  bench_large(name, snapshots);
  std::error_code ignored;
  fs::remove_all(name, ignored);
  return 0;
}
