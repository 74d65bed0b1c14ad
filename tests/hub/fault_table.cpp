// SPDX-License-Identifier: Apache-2.0
#include "tests/hub/fault_table.hpp"

#include "tests/hub/git_objects.hpp"
#include "tests/hub/gzip.hpp"
#include "validate/sha256.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace modeld::test {
namespace {

/// Replaces the body by text of our own; Content-Length follows.
void own_body(SendPlan& plan, std::string text) {
  plan.answer.owner = nullptr;
  plan.answer.text = std::move(text);
}

void remove_header(Answer& answer, std::string_view name) {
  answer.set(std::string(name), "");
}

void status(const FaultRule& rule, const Request&, SendPlan& plan) {
  Answer answer;
  answer.status = rule.status;
  answer.set("Content-Type", "text/plain");
  if (rule.seconds >= 0) answer.set("Retry-After", std::to_string(rule.seconds));
  if (!rule.name.empty()) answer.set(rule.name, rule.value);
  answer.text = std::string(reason_phrase(rule.status));
  plan.answer = std::move(answer);
}

void rate_limit(const FaultRule& rule, const Request& request, SendPlan& plan) {
  status({rule.match, {}, 0, 429, -1, "RateLimit", fmt::format("\"api\";r=0;t={}", rule.seconds)},
         request, plan);
}

void redirect(const FaultRule& rule, const Request& request, SendPlan& plan) {
  const std::string to = rule.value == "self" ? request.target : rule.value;
  status({rule.match, {}, 0, rule.status == 0 ? 302 : rule.status, -1, "Location", to}, request,
         plan);
}

void ignore_range(const FaultRule&, const Request&, SendPlan& plan) {
  plan.answer.status = 200;
  remove_header(plan.answer, "Content-Range");
}

void no_content_range(const FaultRule&, const Request&, SendPlan& plan) {
  if (plan.answer.status == 206) remove_header(plan.answer, "Content-Range");
}

/// Claims to start one byte later than asked.
void wrong_content_range(const FaultRule&, const Request&, SendPlan& plan) {
  if (plan.answer.status != 206) return;
  const std::size_t size = plan.answer.body().size();
  plan.answer.set("Content-Range", fmt::format("bytes 1-{}/{}", size, size + 1));
}

void compress(const FaultRule&, const Request&, SendPlan& plan) {
  if (plan.answer.status != 200 && plan.answer.status != 206) return;
  plan.answer.set("Content-Encoding", "gzip");
  own_body(plan, gzip_stored(plan.answer.body()));
}

void page(const FaultRule&, const Request&, SendPlan& plan) {
  plan.answer.headers = {{"Content-Type", "text/html; charset=utf-8"}};
  plan.answer.status = 200;
  own_body(plan, "<!DOCTYPE html><html><body>Please log in to this network</body></html>");
}

/// Without the type that would give it away.
void disguised_page(const FaultRule&, const Request&, SendPlan& plan) {
  plan.answer.headers = {{"Content-Type", "application/octet-stream"}};
  plan.answer.status = 200;
  own_body(plan, "\n<html><head><title>Blocked</title></head></html>");
}

void pointer(const FaultRule&, const Request&, SendPlan& plan) {
  const std::string_view body = plan.answer.body();
  const auto digest = validate::sha256_of(std::as_bytes(std::span(body.data(), body.size())));
  own_body(plan, lfs_pointer(digest, body.size()));
  plan.answer.status = 200;
  remove_header(plan.answer, "Content-Range");
}

/// Announces and sends fewer bytes than there are.
void short_body(const FaultRule& rule, const Request&, SendPlan& plan) {
  own_body(plan, std::string(plan.answer.body().substr(0, rule.at)));
}

/// Announces and sends more bytes than there are.
void long_body(const FaultRule&, const Request&, SendPlan& plan) {
  own_body(plan, std::string(plan.answer.body()) + "and some more");
}

/// Announces nothing, sends more and closes: only counting tells.
void endless_body(const FaultRule&, const Request&, SendPlan& plan) {
  std::string text(plan.answer.body());
  text.append(100'000, 'x');
  own_body(plan, std::move(text));
  plan.answer.announce_length = false;
  plan.close_after = plan.answer.text.size();
}

/// Announces more than comes, and closes.
void wrong_length(const FaultRule&, const Request&, SendPlan& plan) {
  plan.answer.set("Content-Length", std::to_string(plan.answer.body().size() + 100));
  plan.close_after = plan.answer.body().size();
}

void cut(const FaultRule& rule, const Request&, SendPlan& plan) {
  plan.close_after = rule.at;
}

void reset(const FaultRule& rule, const Request&, SendPlan& plan) {
  plan.close_after = rule.at;
  plan.reset = true;
}

void stall(const FaultRule& rule, const Request&, SendPlan& plan) {
  plan.stall_after = rule.at;
}

void never_answer(const FaultRule&, const Request&, SendPlan& plan) {
  plan.stall_before_head = true;
}

void hang_up(const FaultRule&, const Request&, SendPlan& plan) {
  plan.close_without_answer = true;
}

void reset_at_once(const FaultRule&, const Request&, SendPlan& plan) {
  plan.close_without_answer = true;
  plan.reset = true;
}

void slow(const FaultRule& rule, const Request&, SendPlan& plan) {
  plan.bytes_per_second = rule.at;
}

/// A bad place on the server's disk: the same byte of the file, whatever range is asked for.
void flip(const FaultRule& rule, const Request& request, SendPlan& plan) {
  std::uint64_t first = 0;
  if (plan.answer.status == 206) {
    first = parse_range(request.header("Range"), ~std::uint64_t{0}).value_or(ByteRange{}).first;
  }
  if (rule.at >= first) plan.flip_at = rule.at - first;
}

/// Right headers, the file's first bytes.
void shifted(const FaultRule&, const Request&, SendPlan& plan) {
  if (plan.answer.status == 206) own_body(plan, std::string(plan.answer.body().size(), 'X'));
}

/// What huggingface_hub took for a success: 206, no Content-Range, wrong bytes.
void bare_206(const FaultRule& rule, const Request& request, SendPlan& plan) {
  no_content_range(rule, request, plan);
  shifted(rule, request, plan);
}

void set_header(const FaultRule& rule, const Request&, SendPlan& plan) {
  plan.answer.set(rule.name, rule.value);
}

void drop_header(const FaultRule& rule, const Request&, SendPlan& plan) {
  if (rule.name == "Content-Length") plan.answer.announce_length = false;
  remove_header(plan.answer, rule.name);
}

void huge_head(const FaultRule&, const Request&, SendPlan& plan) {
  for (int i = 0; i < 100; ++i) {
    plan.answer.set(fmt::format("X-Filler-{}", i), std::string(8000, 'f'));
  }
}

void self_link(const FaultRule&, const Request& request, SendPlan& plan) {
  plan.answer.set(
      "Link", fmt::format("<http://{}{}>; rel=\"next\"", request.header("Host"), request.target));
}

/// Another storage tells another tag, or the file behind the address was replaced.
void other_etag(const FaultRule&, const Request&, SendPlan& plan) {
  plan.answer.set("ETag", std::string(k_other_etag));
}

/// Another file of the same length: every byte is another one, whatever range is asked for.
void other_bytes(const FaultRule&, const Request&, SendPlan& plan) {
  if (plan.answer.status != 200 && plan.answer.status != 206) return;
  std::string text(plan.answer.body());
  for (char& c : text) {
    c = static_cast<char>(~c);
  }
  own_body(plan, std::move(text));
}

/// The same, and it has a tag of its own.
void replaced(const FaultRule& rule, const Request& request, SendPlan& plan) {
  other_bytes(rule, request, plan);
  other_etag(rule, request, plan);
}

const std::string* find_header(const Answer& answer, std::string_view name) {
  for (const auto& [field, value] : answer.headers) {
    if (field == name) return &value;
  }
  return nullptr;
}

/// A proxy that hands on no more than `at` bytes at once, and says so.
void less(const FaultRule& rule, const Request& request, SendPlan& plan) {
  const auto range = parse_range(request.header("Range"), ~std::uint64_t{0});
  const std::string* content_range = find_header(plan.answer, "Content-Range");
  if (!range || content_range == nullptr || plan.answer.body().size() <= rule.at) return;
  const std::string total = content_range->substr(content_range->find('/'));
  own_body(plan, std::string(plan.answer.body().substr(0, rule.at)));
  plan.answer.set("Content-Range",
                  fmt::format("bytes {}-{}{}", range->first, range->first + rule.at - 1, total));
}

/// 206 whether or not a range was asked for.
void always_206(const FaultRule&, const Request&, SendPlan& plan) {
  const std::size_t size = plan.answer.body().size();
  if (plan.answer.status != 200 || size == 0) return;
  plan.answer.status = 206;
  plan.answer.set("Content-Range", fmt::format("bytes 0-{}/{}", size - 1, size));
}

/// One range as the only part of many.
void multipart(const FaultRule&, const Request&, SendPlan& plan) {
  const std::string* content_range = find_header(plan.answer, "Content-Range");
  if (content_range == nullptr) return;
  own_body(plan, fmt::format("--part\r\nContent-Range: {}\r\n\r\n{}\r\n--part--\r\n",
                             *content_range, plan.answer.body()));
  plan.answer.set("Content-Type", "multipart/byteranges; boundary=part");
  remove_header(plan.answer, "Content-Range");
}

void wrong_unit(const FaultRule&, const Request&, SendPlan& plan) {
  const std::string* content_range = find_header(plan.answer, "Content-Range");
  if (content_range == nullptr) return;
  plan.answer.set("Content-Range", "chunks" + content_range->substr(content_range->find(' ')));
}

void wrong_total(const FaultRule&, const Request&, SendPlan& plan) {
  const std::string* content_range = find_header(plan.answer, "Content-Range");
  if (content_range == nullptr) return;
  plan.answer.set("Content-Range", content_range->substr(0, content_range->find('/')) + "/999");
}

std::string in_chunks(std::string_view body) {
  constexpr std::size_t k_piece = 10'000;
  std::string text;
  for (std::size_t at = 0; at < body.size(); at += k_piece) {
    const std::string_view piece = body.substr(at, k_piece);
    text += fmt::format("{:x}\r\n{}\r\n", piece.size(), piece);
  }
  return text + "0\r\n\r\n";
}

void chunked(const FaultRule&, const Request&, SendPlan& plan) {
  own_body(plan, in_chunks(plan.answer.body()));
  plan.answer.set("Transfer-Encoding", "chunked");
}

/// Ends between two chunks, `at` bytes on: without the last one nobody knows that it is over.
void cut_chunks(const FaultRule& rule, const Request& request, SendPlan& plan) {
  chunked(rule, request, plan);
  plan.close_after = std::min<std::uint64_t>(rule.at, plan.answer.text.size() - 5);
}

/// The second page's address in the ways that RFC 8288 allows.
void odd_link(const FaultRule&, const Request&, SendPlan& plan) {
  const std::string* link = find_header(plan.answer, "Link");
  if (link == nullptr) return;
  const std::string target = link->substr(0, link->find('>') + 1);
  plan.answer.set("Link",
                  fmt::format("</>; rel=\"first\"\r\nLink: {} ; title=\"a, <b>; rel=prev\"; "
                              "REL = \"prefetch NEXT\"",
                              target));
}

void broken_link(const FaultRule&, const Request&, SendPlan& plan) {
  const std::string* link = find_header(plan.answer, "Link");
  if (link == nullptr) return;
  std::string text = *link;
  text.erase(text.find('>'), 1);
  plan.answer.set("Link", text);
}

/// Always one more page, with an address of its own.
void endless_pages(const FaultRule&, const Request& request, SendPlan& plan) {
  plan.answer.set("Link", fmt::format("<http://{}{}&again=1>; rel=\"next\"", request.header("Host"),
                                      request.target));
}

/// The same, and there is nothing on them.
void empty_pages(const FaultRule& rule, const Request& request, SendPlan& plan) {
  own_body(plan, "[]");
  endless_pages(rule, request, plan);
}

/// 400 for a request without a range, or for more than `at` bytes.
void max_range(const FaultRule& rule, const Request& request, SendPlan& plan) {
  const auto range = parse_range(request.header("Range"), ~std::uint64_t{0});
  if (range && plan.answer.body().size() <= rule.at) return;
  status({rule.match, {}, 0, 400, -1, {}, {}}, request, plan);
}

} // namespace

void answer_status(const FaultRule& rule, SendPlan& plan) {
  status(rule, {}, plan);
}

void answer_replaced(const FaultRule& rule, const Request& request, SendPlan& plan) {
  replaced(rule, request, plan);
}

const std::map<std::string_view, Fault>& faults() {
  static const std::map<std::string_view, Fault> table{
      {"status",
       {"answers `status`, with Retry-After `seconds` and header `name`: `value`", status}},
      {"rate_limit", {"429 with RateLimit r=0;t=`seconds`", rate_limit}},
      {"redirect", {"`status` (302) to `value`; \"self\" is the same address", redirect}},
      {"ignore_range", {"200 and the bytes of the range, as if they were the file", ignore_range}},
      {"whole_file", {"200 and the whole file although a range was asked for", nullptr}},
      {"no_content_range", {"206 without Content-Range", no_content_range}},
      {"wrong_content_range", {"206 for another range than asked", wrong_content_range}},
      {"shifted", {"206 with the right headers and wrong bytes", shifted}},
      {"bare_206", {"206 without Content-Range and with wrong bytes", bare_206}},
      {"gzip", {"Content-Encoding: gzip though nobody asked", compress}},
      {"page", {"200 and a web page", page}},
      {"disguised_page", {"a web page as application/octet-stream", disguised_page}},
      {"pointer", {"the LFS pointer in place of the content", pointer}},
      {"short_body", {"announces and sends `at` bytes", short_body}},
      {"long_body", {"announces and sends some bytes too many", long_body}},
      {"endless_body", {"announces no length and sends too much", endless_body}},
      {"wrong_length", {"announces 100 bytes more than it sends, and closes", wrong_length}},
      {"cut", {"closes after `at` bytes of the body", cut}},
      {"reset", {"RST after `at` bytes of the body", reset}},
      {"stall", {"silent after `at` bytes of the body", stall}},
      {"never_answer", {"silent from the start", never_answer}},
      {"hang_up", {"closes without an answer", hang_up}},
      {"reset_at_once", {"RST without an answer", reset_at_once}},
      {"slow", {"sends `at` bytes a second", slow}},
      {"flip", {"inverts byte `at` of the file", flip}},
      {"set_header", {"header `name` becomes `value`", set_header}},
      {"drop_header", {"header `name` is missing", drop_header}},
      {"huge_head", {"800 KB of headers", huge_head}},
      {"self_link", {"the next page of a listing is the page itself", self_link}},
      {"other_etag", {"another ETag than before", other_etag}},
      {"replaced", {"another file of that length, with another ETag; If-Range is kept", nullptr}},
      {"replaced_blindly", {"the same, by a server that knows no If-Range", replaced}},
      {"replaced_silently", {"another file of that length with the same ETag", other_bytes}},
      {"less", {"an honest 206 for at most `at` bytes of the range", less}},
      {"always_206", {"206 for the whole file though no range was asked for", always_206}},
      {"multipart", {"the range as multipart/byteranges", multipart}},
      {"wrong_unit", {"Content-Range in another unit than bytes", wrong_unit}},
      {"wrong_total", {"Content-Range with another size of the file", wrong_total}},
      {"chunked", {"the body in chunks, without a length", chunked}},
      {"cut_chunks", {"the same, ended after `at` bytes", cut_chunks}},
      {"odd_link", {"a Link header in two lines, with other relations and parameters", odd_link}},
      {"broken_link", {"a Link header without its '>'", broken_link}},
      {"endless_pages", {"a listing that goes on for ever with the same files", endless_pages}},
      {"empty_pages", {"a listing that goes on for ever with nothing", empty_pages}},
      {"max_range", {"400 without a range, or for more than `at` bytes", max_range}},
      {"expire_after", {"ends each signed address after `at` bytes: then 403", nullptr}},
  };
  return table;
}

} // namespace modeld::test
