// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fetch/hub_client.hpp"
#include "validate/sha256.hpp"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::test {

/// Time that only sleeping moves: a wait of an hour takes no time at all.
class FakeTime {
public:
  fetch::Clock::time_point now() const { return fetch::Clock::time_point(time_.load()); }
  void advance(fetch::Clock::duration by) { time_ = time_.load() + by; }

private:
  std::atomic<fetch::Clock::duration> time_{std::chrono::hours(1)};
};

/// A host for resolve and list.
class TestHost : public fetch::Host {
public:
  bool cancelled() override { return cancel && cancel(); }
  void on_notice(const fetch::Notice& notice) override { notices.push_back(notice); }
  fetch::Clock::time_point now() override {
    if (stalled && stalled()) time.advance(std::chrono::seconds(10));
    return time.now();
  }
  void sleep(fetch::Clock::duration by) override { time.advance(by); }
  double jitter() override { return 0; }

  FakeTime time;
  std::function<bool()> cancel;
  std::function<bool()> stalled; ///< time runs while this says so
  std::vector<fetch::Notice> notices;
};

/// A file in memory.
class MemorySink : public ByteSink {
public:
  Result<void> write(std::span<const std::byte> bytes) override {
    if (fail_at != 0 && text.size() + bytes.size() >= fail_at) {
      return fail(Errc::no_space, "writing: no space left on device");
    }
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return {};
  }
  std::string text;
  std::size_t fail_at = 0;
};

/// A shelf in memory.
class MemoryShelf : public fetch::PartShelf {
public:
  Result<void> put(std::uint64_t offset, std::span<const std::vector<std::byte>> pieces) override {
    ++puts;
    if (full) return fail(Errc::no_space, "keeping a part: no space left on device");
    std::string text;
    for (const auto& piece : pieces) {
      text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    }
    parts[offset] = std::move(text);
    return {};
  }
  Result<std::vector<std::byte>> take(std::uint64_t offset) override {
    const auto part = parts.extract(offset);
    if (part.empty()) return fail(Errc::corrupt, "taking a part: it does not check");
    const auto bytes = std::as_bytes(std::span(part.mapped()));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  }
  std::vector<Part> list() override {
    std::vector<Part> all = also_listed;
    for (const auto& [offset, text] : parts) {
      all.push_back({offset, text.size()});
    }
    return all;
  }
  void clear() override {
    ++clears;
    parts.clear();
  }
  std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const auto& [offset, text] : parts) {
      sum += text.size();
    }
    return sum;
  }

  std::map<std::uint64_t, std::string> parts; ///< by offset
  std::vector<Part> also_listed;              ///< and not there, or at wrong places
  bool full = false;
  unsigned puts = 0;
  unsigned clears = 0;
};

/// Downloads into memory and proves the digests, as the daemon does on disk.
class MemoryDownload : public fetch::DownloadHost {
public:
  explicit MemoryDownload(const std::vector<ListedFile>& files) {
    for (const ListedFile& file : files) {
      sinks.push_back(std::make_unique<MemorySink>());
      downloads.push_back({file, 0, {}, sinks.back().get()});
    }
    validators.resize(files.size());
  }

  /// As after a restart: some bytes are there, and what they are.
  void keep(std::size_t index, std::string_view bytes, fetch::Validator validator = {}) {
    sinks[index]->text = bytes;
    downloads[index].offset = bytes.size();
    downloads[index].validator = std::move(validator);
  }
  const std::string& bytes(std::string_view path) const {
    for (std::size_t i = 0; i < downloads.size(); ++i) {
      if (downloads[i].file.path == path) return sinks[i]->text;
    }
    throw std::out_of_range("no such file");
  }
  bool told(fetch::Notice::Kind kind) const {
    for (const fetch::Notice& notice : notices) {
      if (notice.kind == kind) return true;
    }
    return false;
  }

  bool cancelled() override { return cancel && cancel(); }
  void on_notice(const fetch::Notice& notice) override { notices.push_back(notice); }
  fetch::Clock::time_point now() override {
    if (stalled && stalled()) time.advance(std::chrono::seconds(10));
    return time.now();
  }
  void sleep(fetch::Clock::duration by) override { time.advance(by); }
  double jitter() override { return 0; }
  void on_progress(std::size_t index, std::uint64_t bytes) override {
    if (progress) progress(index, bytes);
  }
  void on_validator(std::size_t index, const fetch::Validator& validator) override {
    validators[index] = validator;
  }
  Result<ByteSink*> on_restart(std::size_t index) override {
    ++restarts;
    sinks[index]->text.clear();
    return sinks[index].get();
  }
  Result<void> on_file_done(std::size_t index) override {
    const ListedFile& file = downloads[index].file;
    const auto content = std::as_bytes(std::span(sinks[index]->text));
    const bool right = file.sha256 ? validate::sha256_of(content) == *file.sha256
                                   : validate::git_blob_id(content) == file.git_oid;
    if (!right)
      return fail(Errc::digest_mismatch, fmt::format("verifying '{}': wrong digest", file.path));
    published.push_back(file.path);
    return {};
  }

  std::vector<std::unique_ptr<MemorySink>> sinks;
  std::vector<fetch::Download> downloads;
  std::vector<fetch::Validator> validators; ///< as told last
  std::vector<std::string> published;
  std::vector<fetch::Notice> notices;
  unsigned restarts = 0;
  FakeTime time;
  std::function<bool()> cancel;
  std::function<bool()> stalled; ///< time runs while this says so
  std::function<void(std::size_t, std::uint64_t)> progress;
};

/// A token that is surely one.
inline fetch::Token token(std::string_view text) {
  return fetch::Token::parse(text).value();
}

} // namespace modeld::test
