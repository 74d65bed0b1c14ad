// SPDX-License-Identifier: Apache-2.0
#include "daemon/connection.hpp"
#include "daemon/sse.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/serializer.hpp>
#include <boost/beast/http/write.hpp>

#include <sys/socket.h>

#include <string>

namespace modeld::daemon {
namespace {

namespace http = boost::beast::http;
using Clock = std::chrono::steady_clock;

// Sends what a job tells until its end or the client's. Every member runs on the strand; the job
// only wakes it. One write at a time: events that come meanwhile are told by the next one.
struct EventSender : std::enable_shared_from_this<EventSender> {
  explicit EventSender(std::shared_ptr<Connection> to)
      : connection(std::move(to)), message(connection->header()), serializer(message),
        timer(connection->stream.get_executor()),
        body(std::get<EventBody>(connection->response.body)) {
    ++connection->shared.streams;
  }
  EventSender(const EventSender&) = delete;
  EventSender& operator=(const EventSender&) = delete;
  ~EventSender() { --connection->shared.streams; }

  void start() {
    const std::weak_ptr<EventSender> weak = weak_from_this();
    subscription = body.job->subscribe([weak, executor = connection->stream.get_executor()] {
      boost::asio::post(executor, [weak] {
        if (const auto self = weak.lock()) self->pump();
      });
    });
    writing = true;
    http::async_write_header(
        connection->stream, serializer,
        [self = shared_from_this()](const auto& error, std::size_t) { self->wrote(error); });
    watch_client();
    tick();
  }

  // A client that goes away shows as readable, with nothing to read.
  void watch_client() {
    connection->stream.socket().async_wait(
        boost::asio::socket_base::wait_read, [self = shared_from_this()](const auto& error) {
          char byte = 0;
          if (error || ::recv(self->connection->stream.socket().native_handle(), &byte, 1,
                              MSG_PEEK | MSG_DONTWAIT) <= 0) {
            self->end();
          }
        });
  }

  void tick() {
    timer.expires_after(connection->shared.limits.progress_interval);
    timer.async_wait([self = shared_from_this()](const auto& error) {
      if (error || self->ended) return;
      self->on_tick();
      self->tick();
    });
  }

  void on_tick() {
    if (writing) return;
    const api::Job job = body.job->view();
    if (job.done != shown_done || job.total != shown_total) {
      shown_done = job.done;
      shown_total = job.total;
      return write(sse_progress(job));
    }
    if (Clock::now() - last_write >= connection->shared.limits.heartbeat) {
      write(std::string(sse_heartbeat()));
    }
  }

  void pump() {
    if (writing || ended) return;
    std::string out;
    for (const JobEvent& event : body.job->events_after(body.after)) {
      body.after = event.number;
      last_told = event.last;
      out += sse_event(event);
    }
    if (!out.empty()) write(std::move(out));
  }

  void write(std::string out) {
    writing = true;
    text = std::move(out);
    connection->stream.expires_after(connection->shared.limits.write_timeout);
    boost::asio::async_write(
        connection->stream, boost::asio::buffer(text),
        [self = shared_from_this()](const auto& error, std::size_t) { self->wrote(error); });
  }

  void wrote(const boost::beast::error_code& error) {
    writing = false;
    last_write = Clock::now();
    connection->stream.expires_never();
    if (error || last_told) return end();
    pump();
  }

  void end() {
    if (ended) return;
    ended = true;
    timer.cancel();
    subscription.reset();
    boost::beast::error_code ignored;
    connection->stream.socket().shutdown(boost::asio::socket_base::shutdown_both, ignored);
  }

  std::shared_ptr<Connection> connection;
  http::response<http::empty_body> message;
  http::response_serializer<http::empty_body> serializer;
  boost::asio::steady_timer timer;
  EventBody& body;
  Job::Subscription subscription;
  std::string text;
  std::uint64_t shown_done = 0;
  std::uint64_t shown_total = 0;
  Clock::time_point last_write = Clock::now();
  bool writing = false;
  bool last_told = false;
  bool ended = false;
};

} // namespace

void start_events(std::shared_ptr<Connection> connection) {
  if (connection->shared.streams >= connection->shared.limits.max_streams) {
    return connection->respond(Response::problem({Errc::busy,
                                                  "watching a job: too many are watched",
                                                  "server.max_streams sets the limit",
                                                  {},
                                                  0}));
  }
  connection->keep_alive = false; // the stream ends with the connection
  std::make_shared<EventSender>(std::move(connection))->start();
}

} // namespace modeld::daemon
