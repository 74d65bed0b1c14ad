// SPDX-License-Identifier: Apache-2.0
#include "daemon/client.hpp"

#include "daemon/client_connection.hpp"
#include "schema/json.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>

#include <charconv>
#include <optional>

namespace modeld::daemon {
namespace {

namespace http = boost::beast::http;
using Parser = http::response_parser<http::string_body>;

constexpr std::uint64_t k_max_answer = 256U << 20; // a listing of a million files
constexpr std::uint32_t k_max_head = 64U << 10;

Error went_away() {
  return {Errc::unreachable, "talking to the daemon: it closed the connection", {}, {}, 0};
}

Error broken(std::string_view why) {
  return {Errc::internal, fmt::format("reading the daemon's answer: {}", why), {}, {}, 0};
}

// Feeds the parser until `done` says so; gives the bytes behind what it took.
template <class Done>
Result<std::string> read_until(UnixConnection& connection, Parser& parser, int interrupt,
                               Done done) {
  std::string pending;
  while (!done()) {
    MODELD_ASSIGN(const std::string_view piece, connection.read(interrupt));
    if (piece.empty()) {
      boost::beast::error_code ec;
      parser.put_eof(ec);
      if (ec || !done()) return fail(went_away());
      break;
    }
    pending += piece;
    while (!pending.empty() && !done()) {
      boost::beast::error_code ec;
      const std::size_t used = parser.put(boost::asio::buffer(pending), ec);
      if (ec && ec != http::error::need_more) return fail(broken(ec.message()));
      pending.erase(0, used);
      if (used == 0) break;
    }
  }
  return pending;
}

Error error_of(int status, std::string_view body) {
  const auto parsed = parse_json(body, "the daemon's answer");
  if (parsed && parsed->is_object() && parsed->get_object().contains("code")) {
    return api::error_from_json(parsed->get_object());
  }
  return broken(fmt::format("status {} without a reason", status));
}

// Reads the rest of an answer whose head says that there will be no stream.
Error refusal(UnixConnection& connection, Parser& parser, const std::string& text,
              const Interrupt& interrupt) {
  parser.eager(true);
  boost::beast::error_code ec;
  if (!text.empty()) parser.put(boost::asio::buffer(text), ec);
  if (!parser.is_done()) {
    auto rest = read_until(connection, parser, interrupt.descriptor(),
                           [&parser] { return parser.is_done(); });
    if (!rest) return std::move(rest).error();
  }
  return error_of(static_cast<int>(parser.get().result_int()), parser.get().body());
}

// Takes the lines of one event (WHATWG HTML, server-sent events) out of the front of `text`.
std::optional<std::string> take_event(std::string& text) {
  const auto end = text.find("\n\n");
  if (end == std::string::npos) return {};
  std::string event = text.substr(0, end);
  text.erase(0, end + 2);
  return event;
}

Result<Client::Event> parse_event(std::string_view lines, std::uint64_t number) {
  Client::Event event;
  event.number = number;
  while (!lines.empty()) {
    const auto end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    const auto value = [line](std::string_view name) -> std::optional<std::string_view> {
      if (!line.starts_with(name)) return {};
      return line.substr(name.size());
    };
    if (const auto type = value("event: ")) event.type = *type;
    if (const auto id = value("id: ")) {
      std::from_chars(id->data(), id->data() + id->size(), event.number);
    }
    if (const auto data = value("data: ")) {
      MODELD_ASSIGN(const auto parsed, parse_json(*data, "an event"));
      if (!parsed.is_object()) return fail(broken("an event is no object"));
      MODELD_ASSIGN(event.job, api::Job::from_json(parsed.get_object()));
    }
  }
  return event;
}

} // namespace

struct Client::Connection {
  UnixConnection socket;
};

Client::Client(std::string socket, std::string token)
    : socket_(std::move(socket)), token_(std::move(token)) {}

Client::~Client() = default;

std::string Client::head(std::string_view method, std::string_view path, std::size_t body,
                         std::string_view more) const {
  std::string text = fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\n", method, path);
  if (!token_.empty()) text += fmt::format("Authorization: Bearer {}\r\n", token_);
  if (body > 0) {
    text += fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n", body);
  }
  text += more;
  return text + "\r\n";
}

Result<std::pair<int, std::string>> Client::exchange(std::string_view method, std::string_view path,
                                                     const std::string& body) {
  if (connection_ == nullptr) {
    MODELD_ASSIGN(auto socket, UnixConnection::open(socket_));
    connection_.reset(new Connection{std::move(socket)});
  }
  MODELD_TRY(connection_->socket.write(head(method, path, body.size(), {}) + body));
  Parser parser;
  parser.eager(true);
  parser.header_limit(k_max_head);
  parser.body_limit(k_max_answer);
  auto rest = read_until(connection_->socket, parser, -1, [&parser] { return parser.is_done(); });
  if (!rest || !parser.keep_alive()) connection_.reset();
  if (!rest) return fail(std::move(rest).error());
  return std::pair(static_cast<int>(parser.get().result_int()), std::move(parser.get().body()));
}

Result<Client::Answer> Client::ask(std::string_view method, std::string_view path,
                                   const boost::json::object* body) {
  MODELD_ASSIGN(
      const auto got,
      exchange(method, path, body != nullptr ? boost::json::serialize(*body) : std::string()));
  if (got.first >= 400) return fail(error_of(got.first, got.second));
  MODELD_ASSIGN(auto parsed, parse_json(got.second, "the daemon's answer"));
  if (!parsed.is_object()) return fail(broken("it is no JSON object"));
  return Answer{got.first, std::move(parsed.get_object())};
}

Result<Client::Answer> Client::get(std::string_view path) {
  return ask("GET", path, nullptr);
}

Result<Client::Answer> Client::remove(std::string_view path) {
  return ask("DELETE", path, nullptr);
}

Result<Client::Answer> Client::remove(std::string_view path, const boost::json::object& body) {
  return ask("DELETE", path, &body);
}

Result<Client::Answer> Client::post(std::string_view path, const boost::json::object& body) {
  return ask("POST", path, &body);
}

Result<Client::Answer> Client::put(std::string_view path, const boost::json::object& body) {
  return ask("PUT", path, &body);
}

Result<std::string> Client::text(std::string_view path) {
  MODELD_ASSIGN(auto got, exchange("GET", path, {}));
  if (got.first >= 400) return fail(error_of(got.first, got.second));
  return std::move(got.second);
}

Result<void> Client::stream(
    std::string_view path, const Interrupt& interrupt,
    const std::function<Result<void>(std::string_view piece, std::uint64_t total)>& take) {
  MODELD_ASSIGN(auto socket, UnixConnection::open(socket_));
  MODELD_TRY(socket.write(head("GET", path, 0, "Connection: close\r\n")));
  Parser parser;
  parser.header_limit(k_max_head);
  parser.body_limit(boost::none);
  MODELD_ASSIGN(std::string text, read_until(socket, parser, interrupt.descriptor(),
                                             [&parser] { return parser.is_header_done(); }));
  if (parser.get().result_int() != 200) return fail(refusal(socket, parser, text, interrupt));
  const std::uint64_t total = parser.content_length().value_or(0);
  std::uint64_t left = total;
  std::string_view piece = text;
  while (left > 0) {
    if (piece.empty()) {
      MODELD_ASSIGN(piece, socket.read(interrupt.descriptor()));
      if (piece.empty()) return fail(went_away());
    }
    if (piece.size() > left) return fail(broken("it is longer than it said"));
    MODELD_TRY(take(piece, total));
    left -= piece.size();
    piece = {};
  }
  return {};
}

Result<void> Client::events(std::string_view job, std::uint64_t after, const Interrupt& interrupt,
                            const std::function<bool(const Event&)>& on_event) {
  MODELD_ASSIGN(auto socket, UnixConnection::open(socket_));
  MODELD_TRY(socket.write(head("GET", fmt::format("/v1/jobs/{}/events", url_part(job)), 0,
                               fmt::format("Last-Event-ID: {}\r\n", after))));
  Parser parser;
  parser.header_limit(k_max_head);
  parser.body_limit(k_max_answer);
  MODELD_ASSIGN(std::string text, read_until(socket, parser, interrupt.descriptor(),
                                             [&parser] { return parser.is_header_done(); }));
  if (parser.get().result_int() != 200) return fail(refusal(socket, parser, text, interrupt));
  // The stream's length is the connection's: from here on every byte is text of events.
  while (true) {
    while (auto lines = take_event(text)) {
      MODELD_ASSIGN(const Event event, parse_event(*lines, after));
      after = event.number;
      if (!event.type.empty() && !on_event(event)) return {};
    }
    MODELD_ASSIGN(const std::string_view piece, socket.read(interrupt.descriptor()));
    if (piece.empty()) return fail(went_away());
    text += piece;
  }
}

std::string url_part(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-._~/:@").find(c) != std::string_view::npos;
    if (plain) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

} // namespace modeld::daemon
