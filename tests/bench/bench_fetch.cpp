// SPDX-License-Identifier: Apache-2.0
// Pulls a repository from a Hub with the fetch library and proves every digest, into nothing or
// into a folder: bench_fetch ENDPOINT REPO [--ca FILE] [--out FOLDER] [--parallel N]. Prints one
// line of JSON: seconds, bytes, CPU seconds, peak memory. bench_fetch.sh compares it with curl.
// bench_fetch --sha256 MIB hashes that much out of memory, which is the bound of one file.
#include "fetch/hub_client.hpp"
#include "validate/sha256.hpp"

#include <fmt/format.h>

#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

using namespace modeld;
using namespace modeld::fetch;

namespace {

/// Hashes as the Hub identifies the file, and writes it where there is a path.
class ProvingSink : public ByteSink {
public:
  ProvingSink(const ListedFile& file, const std::string& path) : file_(file), git_(file.size) {
    if (path.empty()) return;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    out_.emplace(path, std::ios::binary | std::ios::trunc);
  }
  Result<void> write(std::span<const std::byte> bytes) override {
    if (file_.sha256) {
      sha256_.update(bytes);
    } else {
      git_.update(bytes);
    }
    if (out_)
      out_->write(reinterpret_cast<const char*>(bytes.data()),
                  static_cast<std::streamsize>(bytes.size()));
    if (out_ && !*out_) return fail(Errc::io, "writing failed");
    return {};
  }
  bool right() {
    return file_.sha256 ? sha256_.finish() == *file_.sha256 : git_.finish() == file_.git_oid;
  }

private:
  const ListedFile& file_;
  validate::Sha256 sha256_;
  validate::GitBlobHasher git_;
  std::optional<std::ofstream> out_;
};

class BenchHost : public DownloadHost {
public:
  bool cancelled() override { return false; }
  void on_progress(std::size_t, std::uint64_t) override {}
  Result<ByteSink*> on_restart(std::size_t) override {
    return fail(Errc::internal, "restarted in a bench");
  }
  Result<void> on_file_done(std::size_t index) override {
    if (!sinks[index]->right()) return fail(Errc::digest_mismatch, "wrong digest");
    return {};
  }
  std::vector<std::unique_ptr<ProvingSink>> sinks;
};

Result<std::uint64_t> pull(const HubOptions& options, const std::string& repo_text,
                           const std::string& out) {
  MODELD_ASSIGN(const RepoId repo, RepoId::parse(repo_text));
  MODELD_ASSIGN(HubClient client, HubClient::create(options));
  BenchHost host;
  MODELD_ASSIGN(const Resolved resolved, client.resolve(repo, "main", {}, host));
  MODELD_ASSIGN(const std::vector<ListedFile> files, client.list(repo, resolved.commit, {}, host));
  std::vector<Download> downloads;
  std::uint64_t bytes = 0;
  for (const ListedFile& file : files) {
    host.sinks.push_back(
        std::make_unique<ProvingSink>(file, out.empty() ? "" : out + "/" + file.path));
    downloads.push_back({file, 0, {}, host.sinks.back().get()});
    bytes += file.size;
  }
  MODELD_TRY(client.download(repo, resolved.commit, downloads, {}, host));
  return bytes;
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

void hash_alone(std::size_t mib) {
  const std::vector<std::byte> piece(512 << 10, std::byte{42}); // as the writer hands them over
  const auto start = std::chrono::steady_clock::now();
  validate::Sha256 hash;
  for (std::size_t i = 0; i < 2 * mib; ++i) {
    hash.update(piece);
  }
  const std::string digest = hash.finish().hex();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print("{{\"seconds\":{:.3f},\"cpu_user\":{:.3f},\"cpu_system\":{:.3f},\"digest\":\"{}\"}}\n",
             took.count(), seconds_of(usage.ru_utime), seconds_of(usage.ru_stime), digest);
}

} // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--sha256") {
    hash_alone(static_cast<std::size_t>(std::atol(argv[2])));
    return 0;
  }
  if (argc < 3) {
    std::cerr << "usage: bench_fetch ENDPOINT REPO [--ca FILE] [--out FOLDER] [--parallel N] "
                 "[--ranges N]\n";
    return 2;
  }
  HubOptions options;
  options.endpoint = argv[1];
  std::string out;
  for (int i = 3; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--ca") options.ca_bundle = argv[i + 1];
    if (name == "--out") out = argv[i + 1];
    if (name == "--parallel") options.max_parallel = static_cast<unsigned>(std::atoi(argv[i + 1]));
    if (name == "--ranges") options.max_ranges = static_cast<unsigned>(std::atoi(argv[i + 1]));
  }
  const auto start = std::chrono::steady_clock::now();
  const auto bytes = pull(options, argv[2], out);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (!bytes) {
    std::cerr << "error: " << bytes.error().message << '\n';
    return 1;
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print("{{\"seconds\":{:.3f},\"bytes\":{},\"cpu_user\":{:.3f},\"cpu_system\":{:.3f},\"peak_"
             "kib\":{}}}\n",
             took.count(), *bytes, seconds_of(usage.ru_utime), seconds_of(usage.ru_stime),
             usage.ru_maxrss);
  return 0;
}
