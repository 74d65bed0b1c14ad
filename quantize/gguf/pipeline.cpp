// SPDX-License-Identifier: Apache-2.0
#include "quantize/gguf/pipeline.hpp"

#include "quantize/gguf/gguf_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace modeld::quantize {
namespace {

// The slowest types take about a microsecond for an element: so many between two looks at the
// cancel flag.
constexpr std::uint64_t k_elements_between_checks = 32768;

// Output between two trims of the sources: 28 MiB of BF16 for four bits a weight.
constexpr std::uint64_t k_bytes_between_trims = std::uint64_t{8} << 20;

/// Some rows of one tensor.
struct Slab {
  std::size_t tensor = 0;
  std::uint64_t first = 0;
  std::uint64_t rows = 0;
  bool last = false; ///< of its tensor
};

std::vector<Slab> cut(const GgufModel& model, std::size_t slab_bytes) {
  std::vector<Slab> slabs;
  for (std::size_t t = 0; t < model.tensors.size(); ++t) {
    const GgufTensor& tensor = model.tensors[t];
    const std::uint64_t rows = tensor.bytes() == 0 ? 0 : tensor.rows();
    const std::uint64_t step =
        std::max<std::uint64_t>(1, slab_bytes / std::max<std::uint64_t>(1, tensor.row_bytes()));
    for (std::uint64_t first = 0; first < rows; first += step) {
      const std::uint64_t count = std::min(step, rows - first);
      slabs.push_back({t, first, count, first + count == rows});
    }
  }
  return slabs;
}

void swap_elements(std::span<std::byte> bytes, std::size_t width) {
  for (std::size_t at = 0; at + width <= bytes.size(); at += width) {
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                 bytes.begin() + static_cast<std::ptrdiff_t>(at + width));
  }
}

bool cancelled(const WriteOptions& options) {
  return options.progress != nullptr && options.progress->cancel.load(std::memory_order_relaxed);
}

tl::unexpected<Error> cancelled_error() {
  return fail(Errc::cancelled, "writing a GGUF file: interrupted, nothing of it is kept");
}

/// Fills `out` with the slab's rows, a few at a time.
Result<void> read_slab(const GgufModel& model, const Slab& slab, const WriteOptions& options,
                       std::vector<std::byte>& out) {
  const GgufTensor& tensor = model.tensors[slab.tensor];
  const std::uint64_t row_bytes = tensor.row_bytes();
  out.resize(slab.rows * row_bytes);
  const std::uint64_t step =
      std::max<std::uint64_t>(1, k_elements_between_checks / tensor.row_elements());
  for (std::uint64_t row = 0; row < slab.rows; row += step) {
    if (cancelled(options)) return cancelled_error();
    const std::uint64_t count = std::min(step, slab.rows - row);
    const auto part = std::span(out).subspan(row * row_bytes, count * row_bytes);
    if (auto read = tensor.source->read_rows(slab.first + row, count, part); !read) {
      return fail(
          std::move(read.error())
              .context(fmt::format("reading tensor '{}', row {}", tensor.name, slab.first + row)));
    }
  }
  if (model.big_endian && swapped_in_big_endian(tensor.type)) {
    swap_elements(out, info(tensor.type).bytes);
  }
  return {};
}

/// Writes and counts.
class CountingSink {
public:
  CountingSink(ByteSink& sink, Progress* progress) : sink_(sink), progress_(progress) {}

  Result<void> write(std::span<const std::byte> bytes) {
    MODELD_TRY(sink_.write(bytes));
    if (progress_ != nullptr) progress_->done += bytes.size();
    return {};
  }

  Result<void> zeros(std::uint64_t count) {
    static constexpr std::array<std::byte, 256> k_zeros{};
    while (count > 0) {
      const std::uint64_t some = std::min<std::uint64_t>(count, k_zeros.size());
      MODELD_TRY(write(std::span(k_zeros).first(some)));
      count -= some;
    }
    return {};
  }

private:
  ByteSink& sink_;
  Progress* progress_;
};

/// A ring of slabs: workers fill slot s % size, the writer empties them in order. A worker takes
/// the next slab only while it is less than `size` ahead of the writer, which bounds the memory.
class Ring {
public:
  Ring(const GgufModel& model, const std::vector<Slab>& slabs, const WriteOptions& options,
       std::size_t size)
      : model_(model), slabs_(slabs), options_(options), slots_(size) {}

  void work() {
    while (const auto taken = take()) {
      Slot& slot = slots_[*taken % slots_.size()];
      auto result = read_slab(model_, slabs_[*taken], options_, slot.bytes);
      const std::lock_guard lock(mutex_);
      slot.result = std::move(result);
      slot.filled = true;
      changed_.notify_all();
    }
  }

  /// The bytes of slab number `slab`, valid until release().
  Result<std::span<const std::byte>> wait(std::size_t slab) {
    Slot& slot = slots_[slab % slots_.size()];
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&slot] { return slot.filled; });
    if (!slot.result) return fail(std::move(slot.result.error()));
    return std::span<const std::byte>(slot.bytes);
  }

  void release(std::size_t slab) {
    const std::lock_guard lock(mutex_);
    slots_[slab % slots_.size()].filled = false;
    written_ = slab + 1;
    changed_.notify_all();
  }

  void stop() {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }

private:
  struct Slot {
    std::vector<std::byte> bytes;
    Result<void> result;
    bool filled = false;
  };

  std::optional<std::size_t> take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] {
      return stop_ || next_ == slabs_.size() || next_ < written_ + slots_.size();
    });
    if (stop_ || next_ == slabs_.size()) return std::nullopt;
    return next_++;
  }

  const GgufModel& model_;
  const std::vector<Slab>& slabs_;
  const WriteOptions& options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Slot> slots_;
  std::size_t next_ = 0;    ///< slab that the next free worker takes
  std::size_t written_ = 0; ///< slabs that the writer is done with
  bool stop_ = false;
};

/// Workers that are told to stop and joined, whichever way the writer leaves.
class Workers {
public:
  Workers(Ring& ring, unsigned count) : ring_(ring) {
    for (unsigned i = 0; i < count; ++i) {
      threads_.emplace_back([&ring] { ring.work(); });
    }
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers() {
    ring_.stop();
    for (std::thread& thread : threads_) {
      thread.join();
    }
  }

private:
  Ring& ring_;
  std::vector<std::thread> threads_;
};

} // namespace

Result<void> write_gguf(const GgufModel& model, ByteSink& sink, const WriteOptions& options) {
  MODELD_ASSIGN(const GgufLayout layout, lay_out_gguf(model));
  if (options.progress != nullptr) {
    options.progress->done = 0;
    options.progress->total = layout.file_size;
  }
  CountingSink out(sink, options.progress);
  MODELD_TRY(out.write(layout.header));

  const std::vector<Slab> slabs = cut(model, options.slab_bytes);
  const unsigned threads =
      options.threads != 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
  Ring ring(model, slabs, options, std::size_t{2} * threads + 2);
  const Workers workers(ring, threads);
  std::uint64_t untrimmed = 0;
  for (std::size_t s = 0; s < slabs.size(); ++s) {
    if (cancelled(options)) return cancelled_error();
    MODELD_ASSIGN(const auto bytes, ring.wait(s));
    MODELD_TRY(out.write(bytes));
    untrimmed += bytes.size();
    ring.release(s);
    if (options.sources != nullptr && untrimmed >= k_bytes_between_trims) {
      options.sources->trim();
      untrimmed = 0;
    }
    if (!slabs[s].last) continue;
    const std::uint64_t size = model.tensors[slabs[s].tensor].bytes();
    const std::uint64_t tail = size % model.alignment;
    MODELD_TRY(out.zeros(tail == 0 ? 0 : model.alignment - tail));
  }
  return {};
}

} // namespace modeld::quantize
