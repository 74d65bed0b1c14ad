// SPDX-License-Identifier: Apache-2.0
#include "fetch/range_reads.hpp"

#include "fetch/api.hpp"
#include "fetch/range_fetch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <memory>

namespace modeld::fetch {
namespace {

constexpr std::chrono::milliseconds k_step{50};

// One piece on its way into memory.
class PieceFetch final : public RangeOwner {
public:
  PieceFetch(DownloadContext& context, FilePiece& piece, const std::vector<Url>& sites)
      : piece_(piece), source_{sites, 0, {}, {}, false},
        range_(context, piece.file, source_, *this, piece.offset, piece.offset + piece.length,
               RangeFetch::Kind::part) {
    piece_.bytes.clear();
    piece_.bytes.reserve(piece.length);
  }

  RangeFetch& range() { return range_; }
  const FilePiece& piece() const { return piece_; }

  Result<void> on_bytes(RangeFetch&, std::span<const std::byte> bytes) override {
    piece_.bytes.insert(piece_.bytes.end(), bytes.begin(), bytes.end());
    return {};
  }
  Result<void> on_restart(RangeFetch&) override {
    return fail(Errc::internal, fmt::format("reading a part of '{}'", piece_.file.path));
  }

private:
  FilePiece& piece_;
  FileSource source_;
  RangeFetch range_;
};

Error no_ranges(const FilePiece& piece) {
  return {Errc::net_permanent,
          fmt::format("reading bytes {} to {} of '{}': the server does not send parts of files",
                      piece.offset, piece.offset + piece.length, piece.file.path),
          "pull the model, then check what is here",
          {},
          0};
}

} // namespace

Result<void> read_ranges(DownloadContext& context, std::span<FilePiece> pieces,
                         const std::vector<std::vector<Url>>& sites) {
  const std::size_t most = std::max(1U, context.options.max_parallel);
  std::deque<std::unique_ptr<PieceFetch>> work;
  std::size_t next = 0;
  while (next < pieces.size() || !work.empty()) {
    if (context.host.cancelled()) return fail(cancelled_error());
    for (; work.size() < most && next < pieces.size(); ++next) {
      work.push_back(std::make_unique<PieceFetch>(context, pieces[next], sites[next]));
    }
    const auto now = context.host.now();
    bool running = false;
    auto first_start = Clock::time_point::max();
    for (const auto& one : work) {
      RangeFetch& range = one->range();
      if (range.state() == RangeFetch::State::failed) return fail(range.error());
      if (range.state() == RangeFetch::State::unranged) return fail(no_ranges(one->piece()));
      if (range.state() == RangeFetch::State::ready) {
        if (range.ready_at() <= now) {
          range.start();
        } else {
          first_start = std::min(first_start, range.ready_at());
        }
      }
      range.check_speed(now);
      running = running || range.state() == RangeFetch::State::running;
    }
    std::erase_if(work,
                  [](const auto& one) { return one->range().state() == RangeFetch::State::done; });
    if (running) {
      context.wire.step(k_step);
    } else if (first_start != Clock::time_point::max()) {
      context.host.sleep(std::min<Clock::duration>(first_start - now, k_step));
    }
  }
  return {};
}

} // namespace modeld::fetch
