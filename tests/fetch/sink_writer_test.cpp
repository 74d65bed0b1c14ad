// SPDX-License-Identifier: Apache-2.0
#include "fetch/sink_writer.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

using namespace modeld;
using fetch::SinkWriter;

namespace {

constexpr std::size_t k_limit = 2 << 20;

/// Keeps what it is given, and sees whether two threads give at once.
class Keeper final : public ByteSink {
public:
  Result<void> write(std::span<const std::byte> bytes) override {
    if (inside_.exchange(true)) overlapped = true;
    if (refuse_at != 0 && kept.size() >= refuse_at) {
      inside_ = false;
      return fail(Errc::no_space, "full");
    }
    kept.insert(kept.end(), bytes.begin(), bytes.end());
    std::this_thread::sleep_for(pause);
    inside_ = false;
    return {};
  }
  std::vector<std::byte> kept;
  std::size_t refuse_at = 0;
  std::chrono::microseconds pause{0};
  std::atomic<bool> overlapped{false};

private:
  std::atomic<bool> inside_{false};
};

std::vector<std::byte> numbered(std::size_t size, unsigned seed) {
  std::vector<std::byte> out(size);
  unsigned state = seed;
  for (std::byte& byte : out) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<std::byte>(state >> 24);
  }
  return out;
}

void ignore_wake() {}

} // namespace

TEST_CASE("SinkWriter writes several sinks side by side, each in order", "[fetch][writer]") {
  constexpr std::size_t k_files = 5;
  std::vector<std::vector<std::byte>> content;
  for (unsigned i = 0; i < k_files; ++i) {
    content.push_back(numbered((6 << 20) + i * 77'777, i));
  }
  std::array<Keeper, k_files> sinks;
  {
    std::array<SinkWriter::Channel, k_files> channels;
    SinkWriter writer(k_limit, ignore_wake);
    std::array<std::size_t, k_files> at{};
    for (bool more = true; more;) {
      more = false;
      for (std::size_t i = 0; i < k_files; ++i) {
        const std::size_t piece =
            std::min<std::size_t>(16'384 + i * 1000, content[i].size() - at[i]);
        if (piece == 0) continue;
        more = true;
        REQUIRE(writer.write(channels[i], sinks[i], std::span(content[i]).subspan(at[i], piece)));
        at[i] += piece;
      }
    }
    for (SinkWriter::Channel& channel : channels) {
      writer.drain(channel);
      CHECK(*writer.idle(channel));
    }
  }
  for (std::size_t i = 0; i < k_files; ++i) {
    INFO(i);
    CHECK(sinks[i].kept == content[i]);
    CHECK_FALSE(sinks[i].overlapped);
  }
}

TEST_CASE("SinkWriter tells the error of one sink, and goes on with the others",
          "[fetch][writer]") {
  const auto content = numbered(8 << 20, 7);
  Keeper full;
  full.refuse_at = 1 << 20;
  Keeper sound;
  SinkWriter::Channel of_full;
  SinkWriter::Channel of_sound;
  SinkWriter writer(k_limit, ignore_wake);
  bool told = false;
  for (std::size_t at = 0; at < content.size(); at += SinkWriter::k_chunk) {
    const auto piece = std::span(content).subspan(at, SinkWriter::k_chunk);
    if (!told) told = !writer.write(of_full, full, piece);
    REQUIRE(writer.write(of_sound, sound, piece));
  }
  writer.drain(of_full);
  CHECK(writer.idle(of_full).error().code == Errc::no_space);
  writer.drain(of_sound);
  CHECK(*writer.idle(of_sound));
  CHECK(full.kept.size() == full.refuse_at);
  CHECK(sound.kept == content);
}

TEST_CASE("SinkWriter::discard leaves a sink alone, and the channel begins again",
          "[fetch][writer]") {
  const auto content = numbered(2 << 20, 9);
  Keeper slow;
  slow.pause = std::chrono::milliseconds(5);
  Keeper next;
  SinkWriter::Channel channel;
  SinkWriter writer(k_limit, ignore_wake);
  REQUIRE(writer.write(channel, slow, content));
  writer.discard(channel);
  const std::size_t kept = slow.kept.size();
  REQUIRE(writer.write(channel, next, std::span(content).first(100'000)));
  writer.drain(channel);
  CHECK(*writer.idle(channel));
  CHECK(slow.kept.size() == kept);
  CHECK(next.kept.size() == 100'000);
}

TEST_CASE("SinkWriter wakes whoever asked for an idle channel", "[fetch][writer]") {
  const auto content = numbered(3 << 20, 11);
  Keeper slow;
  slow.pause = std::chrono::milliseconds(2);
  std::atomic<int> woken{0};
  SinkWriter::Channel channel;
  SinkWriter writer(4 * k_limit, [&] {
    ++woken;
    woken.notify_all();
  });
  REQUIRE(writer.write(channel, slow, content));
  for (int seen = woken; !*writer.idle(channel); seen = woken) {
    woken.wait(seen); // for ever where nobody wakes
  }
  CHECK(slow.kept == content);
}

TEST_CASE("SinkWriter writes all that was handed over before it ends", "[fetch][writer]") {
  const auto content = numbered(2 << 20, 13);
  Keeper slow;
  slow.pause = std::chrono::milliseconds(2);
  SinkWriter::Channel channel;
  {
    SinkWriter writer(4 * k_limit, ignore_wake);
    REQUIRE(writer.write(channel, slow, content)); // a multiple of k_chunk
  }
  CHECK(slow.kept == content);
}

TEST_CASE("SinkWriter tells whether its sinks are behind", "[fetch][writer]") {
  class Gate final : public ByteSink {
  public:
    Result<void> write(std::span<const std::byte>) override {
      open.wait(false);
      return {};
    }
    std::atomic<bool> open{false};
  };
  Gate gate;
  SinkWriter::Channel channel;
  SinkWriter writer(k_limit, ignore_wake);
  CHECK_FALSE(writer.is_behind());
  REQUIRE(writer.write(channel, gate, numbered(k_limit / 2, 1)));
  CHECK_FALSE(writer.is_behind());
  REQUIRE(writer.write(channel, gate, numbered(SinkWriter::k_chunk, 2)));
  CHECK(writer.is_behind());
  gate.open = true;
  gate.open.notify_all();
  writer.drain(channel);
  CHECK_FALSE(writer.is_behind());
}
