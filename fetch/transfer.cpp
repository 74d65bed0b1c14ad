// SPDX-License-Identifier: Apache-2.0
#include "fetch/transfer.hpp"

#include "fetch/curl_handle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace modeld::fetch {
namespace {

constexpr std::size_t k_max_head = 256 << 10; // bytes of one response's headers
constexpr long k_receive_buffer = 256 << 10;  // curl's default of 16 KiB costs a third of the speed

template <class T>
void set(CURL* easy, CURLoption option, T value) {
  // Fails only for options that the library was built without; all that we use are older.
  curl_easy_setopt(easy, option, value);
}

/// Whether a list of hosts names this one with its port.
bool names_host_and_port(std::string_view list, const Url& url) {
  const std::string& origin = url.origin();
  const std::string_view wanted = std::string_view(origin).substr(origin.find("//") + 2);
  while (!list.empty()) {
    const auto end = std::min(list.find_first_of(", \t"), list.size());
    if (list.substr(0, end) == wanted) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

} // namespace

struct Wire::Transfer {
  EasyHandle easy;
  HeaderList request_headers;
  Receiver* receiver = nullptr;
  std::string url; ///< redacted
  Headers headers;
  std::size_t head_bytes = 0;
  bool head_given = false;
  std::array<char, CURL_ERROR_SIZE> words{};

  static std::size_t on_header(char* data, std::size_t one, std::size_t count, void* self);
  static std::size_t on_body(char* data, std::size_t one, std::size_t count, void* self);
  bool header_line(std::string_view line);
};

struct Wire::Impl {
  explicit Impl(WireOptions with) : options(std::move(with)), multi(curl_multi_init()) {}

  WireOptions options;
  MultiHandle multi;
  std::vector<EasyHandle> idle; ///< handles keep TLS sessions and buffers
  std::map<Id, std::unique_ptr<Transfer>> transfers;
  Id last_id = 0;

  EasyHandle take_easy();
  void configure(Transfer& transfer, const HttpRequest& request);
  void finish(CURL* easy, CURLcode code);
};

/// One line of a head; an empty one ends it. Trailers come after the body and are ignored.
bool Wire::Transfer::header_line(std::string_view line) {
  if (head_given) return true;
  head_bytes += line.size();
  if (head_bytes > k_max_head) return false;
  if (line.starts_with("HTTP/")) {
    headers.clear();
    return true;
  }
  const auto end = line.find_last_not_of("\r\n");
  if (end == std::string_view::npos) {
    long status = 0;
    curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &status);
    if (status < 200) return true;
    head_given = true;
    return receiver->on_head(static_cast<unsigned>(status), headers);
  }
  const auto colon = line.find(':');
  if (colon != std::string_view::npos) {
    headers.add(line.substr(0, colon), line.substr(colon + 1));
  }
  return true;
}

std::size_t Wire::Transfer::on_header(char* data, std::size_t one, std::size_t count, void* self) {
  const std::size_t size = one * count;
  return static_cast<Transfer*>(self)->header_line({data, size}) ? size : 0;
}

std::size_t Wire::Transfer::on_body(char* data, std::size_t one, std::size_t count, void* self) {
  const std::size_t size = one * count;
  auto& receiver = *static_cast<Transfer*>(self)->receiver;
  return receiver.on_body(std::as_bytes(std::span(data, size))) ? size : 0;
}

EasyHandle Wire::Impl::take_easy() {
  if (idle.empty()) return EasyHandle(curl_easy_init());
  EasyHandle easy = std::move(idle.back());
  idle.pop_back();
  curl_easy_reset(easy.get());
  return easy;
}

void Wire::Impl::configure(Transfer& transfer, const HttpRequest& request) {
  CURL* easy = transfer.easy.get();
  for (const auto& [name, value] : request.headers) {
    append(transfer.request_headers, fmt::format("{}: {}", name, value));
  }
  set(easy, CURLOPT_URL, request.url.text().c_str());
  set(easy, CURLOPT_PATH_AS_IS, 1L);
  set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  set(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
  set(easy, CURLOPT_FOLLOWLOCATION, 0L);
  set(easy, CURLOPT_NOSIGNAL, 1L);
  set(easy, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
  // A proxy that only carries a TLS tunnel must not see the token.
  set(easy, CURLOPT_HEADEROPT, static_cast<long>(CURLHEADER_SEPARATE));
  set(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  set(easy, CURLOPT_HTTPHEADER, transfer.request_headers.get());
  set(easy, CURLOPT_USERAGENT, options.user_agent.c_str());
  // Asks for no encoding, and still decodes what a proxy compresses unasked (failure case C07).
  set(easy, CURLOPT_ACCEPT_ENCODING, "identity");
  set(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options.connect_timeout.count()));
  set(easy, CURLOPT_BUFFERSIZE, k_receive_buffer);
  set(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  set(easy, CURLOPT_FRESH_CONNECT, request.fresh_connection ? 1L : 0L);
  if (!options.http_proxy.empty() && !request.url.secure()) {
    set(easy, CURLOPT_PROXY, options.http_proxy.c_str());
  }
  if (names_host_and_port(options.no_proxy, request.url)) set(easy, CURLOPT_NOPROXY, "*");
  if (!options.ca_bundle.empty()) set(easy, CURLOPT_CAINFO, options.ca_bundle.c_str());
  set(easy, CURLOPT_ERRORBUFFER, transfer.words.data());
  set(easy, CURLOPT_HEADERFUNCTION, &Transfer::on_header);
  set(easy, CURLOPT_HEADERDATA, &transfer);
  set(easy, CURLOPT_WRITEFUNCTION, &Transfer::on_body);
  set(easy, CURLOPT_WRITEDATA, &transfer);
}

Wire::Wire(WireOptions options) {
  init_curl();
  impl_ = std::make_unique<Impl>(std::move(options));
  curl_multi_setopt(impl_->multi.get(), CURLMOPT_MAXCONNECTS,
                    static_cast<long>(impl_->options.max_connections));
}

Wire::~Wire() {
  for (auto& [id, transfer] : impl_->transfers) {
    curl_multi_remove_handle(impl_->multi.get(), transfer->easy.get());
  }
}

Wire::Id Wire::start(const HttpRequest& request, Receiver& receiver) {
  auto transfer = std::make_unique<Transfer>();
  transfer->easy = impl_->take_easy();
  transfer->receiver = &receiver;
  transfer->url = request.url.redacted();
  impl_->configure(*transfer, request);
  const Id id = ++impl_->last_id;
  curl_easy_setopt(transfer->easy.get(), CURLOPT_PRIVATE, reinterpret_cast<char*>(id));
  curl_multi_add_handle(impl_->multi.get(), transfer->easy.get());
  impl_->transfers.emplace(id, std::move(transfer));
  return id;
}

void Wire::cancel(Id id) {
  const auto it = impl_->transfers.find(id);
  if (it == impl_->transfers.end()) return;
  curl_multi_remove_handle(impl_->multi.get(), it->second->easy.get());
  impl_->idle.push_back(std::move(it->second->easy));
  impl_->transfers.erase(it);
}

void Wire::Impl::finish(CURL* easy, CURLcode code) {
  char* mark = nullptr;
  curl_easy_getinfo(easy, CURLINFO_PRIVATE, &mark);
  const auto it = transfers.find(reinterpret_cast<Id>(mark));
  if (it == transfers.end()) return;
  const std::unique_ptr<Transfer> transfer = std::move(it->second);
  transfers.erase(it);
  curl_multi_remove_handle(multi.get(), easy);
  idle.push_back(std::move(transfer->easy));
  if (code == CURLE_OK && transfer->head_given) {
    transfer->receiver->on_end(nullptr);
    return;
  }
  if (code == CURLE_OK) code = CURLE_GOT_NOTHING;
  const Error error =
      from_curl(code, fmt::format("asking '{}'", transfer->url), transfer->words.data());
  transfer->receiver->on_end(&error);
}

void Wire::step(std::chrono::milliseconds longest) {
  int running = 0;
  curl_multi_perform(impl_->multi.get(), &running);
  bool ended = false;
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(impl_->multi.get(), &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    ended = true;
    impl_->finish(message->easy_handle, message->data.result);
  }
  if (ended) return;
  curl_multi_poll(impl_->multi.get(), nullptr, 0, static_cast<int>(longest.count()), nullptr);
}

void Wire::wake() {
  curl_multi_wakeup(impl_->multi.get());
}

std::size_t Wire::active() const {
  return impl_->transfers.size();
}

} // namespace modeld::fetch
