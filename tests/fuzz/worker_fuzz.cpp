// SPDX-License-Identifier: Apache-2.0
// What a worker that has gone bad may send: packets at will to the side that is trusted. Each is a
// byte of kind, two of length, and the payload.
#include "fuzz.hpp"

#include "daemon/worker_process.hpp"

#include <boost/json.hpp>

#include <sys/socket.h>

using namespace modeld;
using namespace modeld::daemon;
using namespace modeld::fuzz;

namespace {

// Nobody reads until all are sent, so they must fit into the socket's buffer, 208 KiB by default.
// The kernel counts what it allocates: up to twice the payload, and some 768 bytes for each packet.
constexpr std::size_t k_room = 128U << 10;
constexpr std::size_t k_packet = 1024;

class CountingSink final : public ByteSink {
public:
  Result<void> write(std::span<const std::byte> bytes) override {
    written += bytes.size();
    return {};
  }
  std::uint64_t written = 0;
};

WorkerRequest request() {
  WorkerRequest out;
  out.task = WorkerRequest::Task::build;
  out.name = "name";
  out.files = {{"a", 1}, {"b", 2}};
  return out;
}

// The data bytes that were sent.
std::uint64_t send_packets(WorkerChannel& worker, std::string_view rest) {
  std::uint64_t sent = 0;
  std::size_t taken = 0;
  while (rest.size() >= 3 && taken < k_room) {
    const auto kind = static_cast<Packet>(rest[0]);
    const std::size_t length = std::min<std::size_t>(
        static_cast<unsigned char>(rest[1]) + 256U * (static_cast<unsigned char>(rest[2]) & 15U),
        rest.size() - 3);
    require(worker.send(kind, rest.substr(3, length)).has_value(), "a packet that was not sent");
    sent += length + 1;
    taken += 2 * length + k_packet;
    rest.remove_prefix(3 + length);
  }
  return sent;
}

} // namespace

int modeld::fuzz::fuzz_worker(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = text_of(data, size);
  if (const auto parsed = WorkerRequest::from_json(text)) {
    const auto again = WorkerRequest::from_json(parsed->to_json());
    require(again.has_value(), "a request that does not survive its own JSON");
    require(again->to_json() == parsed->to_json(), "a request that changes");
  }
  auto ends = WorkerChannel::make_pair();
  require(ends.has_value(), "a pair of sockets");
  const int end = ends->second.get();
  WorkerChannel ours(std::move(ends->first));
  WorkerChannel worker(std::move(ends->second));
  const std::uint64_t sent = send_packets(worker, text);
  ::shutdown(end, SHUT_WR);
  CountingSink sink;
  std::uint64_t opened = 0;
  WorkerCalls calls;
  calls.open = [&opened](std::size_t index) -> Result<Descriptor> {
    require(index < 2, "a file that is not in the request");
    ++opened;
    return Descriptor();
  };
  calls.plan = [&sink](const boost::json::object&) -> Result<ByteSink*> { return &sink; };
  Progress progress;
  const auto outcome = talk_to_worker(ours, request(), calls, progress);
  require(sink.written <= sent, "more bytes than were sent");
  require(outcome.has_value() || !outcome.error().message.empty(), "an error without words");
  return 0;
}
