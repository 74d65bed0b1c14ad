// SPDX-License-Identifier: Apache-2.0
#include "quantize/gguf/pipeline.hpp"

#include "quantize/gguf/gguf_writer.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>

using namespace modeld;
using namespace modeld::quantize;

namespace {

class MemorySink final : public ByteSink {
public:
  Result<void> write(std::span<const std::byte> more) override {
    if (bytes.size() + more.size() > limit) return fail(Errc::no_space, "writing: disk full");
    bytes.insert(bytes.end(), more.begin(), more.end());
    return {};
  }
  std::vector<std::byte> bytes;
  std::size_t limit = SIZE_MAX;
};

/// Bytes that tell which row they belong to; counts what is being read.
class RowNumbers final : public TensorSource {
public:
  explicit RowNumbers(std::uint64_t fails_at = UINT64_MAX) : fails_at_(fails_at) {}
  Result<void> read_rows(std::uint64_t first, std::uint64_t count,
                         std::span<std::byte> out) const override {
    if (first <= fails_at_ && fails_at_ < first + count) {
      return fail(Errc::io, "reading the shard: gone");
    }
    const std::size_t row = out.size() / count;
    for (std::uint64_t r = 0; r < count; ++r) {
      std::fill_n(out.data() + r * row, row, static_cast<std::byte>(first + r));
    }
    return {};
  }

private:
  std::uint64_t fails_at_;
};

GgufModel model_of(std::uint64_t fails_at = UINT64_MAX) {
  GgufModel model;
  model.kv = {{"general.architecture", std::string("test")}};
  model.tensors = {
      {"a", TensorType::f32, {3, 5}, std::make_shared<RowNumbers>()},
      {"none", TensorType::f32, {0}, std::make_shared<RowNumbers>()},
      {"b", TensorType::f16, {7, 401}, std::make_shared<RowNumbers>(fails_at)},
      {"c", TensorType::q8_0, {64, 2, 3}, std::make_shared<RowNumbers>()},
  };
  return model;
}

} // namespace

TEST_CASE("write_gguf gives the same bytes at any number of threads and slab size",
          "[quantize][pipeline]") {
  MemorySink expected;
  REQUIRE(write_gguf(model_of(), expected, {1, std::size_t{1} << 20, nullptr}));
  const auto layout = lay_out_gguf(model_of());
  REQUIRE(expected.bytes.size() == layout->file_size);
  CHECK(std::equal(layout->header.begin(), layout->header.end(), expected.bytes.begin()));
  const auto b = expected.bytes.begin() + static_cast<std::ptrdiff_t>(layout->offsets[2]);
  CHECK(b[14 * 200] == std::byte{200});
  for (const unsigned threads : {1U, 2U, 7U}) {
    for (const std::size_t slab : {std::size_t{1}, std::size_t{15}, std::size_t{4096}}) {
      MemorySink sink;
      REQUIRE(write_gguf(model_of(), sink, {threads, slab, nullptr}));
      CHECK(sink.bytes == expected.bytes);
    }
  }
}

TEST_CASE("write_gguf counts every byte of the file as progress", "[quantize][pipeline]") {
  Progress progress;
  MemorySink sink;
  REQUIRE(write_gguf(model_of(), sink, {2, 64, &progress}));
  CHECK(progress.done == sink.bytes.size());
  CHECK(progress.total == sink.bytes.size());
}

TEST_CASE("write_gguf names the tensor and row that cannot be read", "[quantize][pipeline]") {
  for (const unsigned threads : {1U, 7U}) {
    MemorySink sink;
    const auto result = write_gguf(model_of(123), sink, {threads, 14, nullptr});
    REQUIRE_FALSE(result);
    CHECK(result.error().code == Errc::io);
    CHECK(result.error().message == "reading tensor 'b', row 123: reading the shard: gone");
  }
}

TEST_CASE("write_gguf stops at the first error of the sink", "[quantize][pipeline]") {
  for (std::size_t limit = 0; limit < 4000; limit += 333) {
    MemorySink sink;
    sink.limit = limit;
    const auto result = write_gguf(model_of(), sink, {3, 64, nullptr});
    REQUIRE_FALSE(result);
    CHECK(result.error().code == Errc::no_space);
  }
}

TEST_CASE("write_gguf stops when it is told to", "[quantize][pipeline]") {
  /// Never ends by itself: tells the progress to cancel after some rows.
  class Endless final : public TensorSource {
  public:
    explicit Endless(Progress& progress) : progress_(progress) {}
    Result<void> read_rows(std::uint64_t, std::uint64_t, std::span<std::byte>) const override {
      if (++reads_ == 5) progress_.cancel = true;
      return {};
    }

  private:
    Progress& progress_;
    mutable std::atomic<int> reads_{0};
  };
  Progress progress;
  GgufModel model;
  model.tensors = {{"t", TensorType::f32, {1024, 1U << 30}, std::make_shared<Endless>(progress)}};
  class Nowhere final : public ByteSink {
    Result<void> write(std::span<const std::byte>) override { return {}; }
  } sink;
  const auto result = write_gguf(model, sink, {2, std::size_t{1} << 20, &progress});
  REQUIRE_FALSE(result);
  CHECK(result.error().code == Errc::cancelled);
}

TEST_CASE("write_gguf keeps no more than its window of slabs ahead of the sink",
          "[quantize][pipeline][rule-9]") {
  struct Counts {
    std::atomic<std::uint64_t> read{0};
    std::atomic<std::uint64_t> written{0};
    std::atomic<std::uint64_t> most{0};
  } counts;
  class Counting final : public TensorSource {
  public:
    explicit Counting(Counts& counts) : counts_(counts) {}
    Result<void> read_rows(std::uint64_t, std::uint64_t count,
                           std::span<std::byte>) const override {
      const std::uint64_t ahead = (counts_.read += count) - counts_.written;
      std::uint64_t seen = counts_.most;
      while (ahead > seen && !counts_.most.compare_exchange_weak(seen, ahead)) {
      }
      return {};
    }

  private:
    Counts& counts_;
  };
  class Slow final : public ByteSink {
  public:
    explicit Slow(Counts& counts) : counts_(counts) {}
    Result<void> write(std::span<const std::byte> bytes) override {
      if (header_) {
        header_ = false;
        return {};
      }
      counts_.written += bytes.size() / 4096;
      std::this_thread::yield();
      return {};
    }

  private:
    Counts& counts_;
    bool header_ = true;
  };
  GgufModel model;
  model.tensors = {{"t", TensorType::f32, {1024, 2000}, std::make_shared<Counting>(counts)}};
  Slow sink(counts);
  REQUIRE(write_gguf(model, sink, {3, 4096, nullptr}));
  CHECK(counts.most <= 2 * 3 + 2 + 1);
}
