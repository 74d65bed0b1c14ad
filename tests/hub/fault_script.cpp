// SPDX-License-Identifier: Apache-2.0
#include "tests/hub/fault_script.hpp"

#include "schema/json.hpp"
#include "tests/hub/git_objects.hpp"
#include "tests/hub/gzip.hpp"
#include "validate/sha256.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>

namespace modeld::test {
namespace {

using Apply = void (*)(const FaultRule&, const Request&, SendPlan&);

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
  plan.answer.set("ETag", "\"another-file\"");
}

/// 400 for a request without a range, or for more than `at` bytes.
void max_range(const FaultRule& rule, const Request& request, SendPlan& plan) {
  const auto range = parse_range(request.header("Range"), ~std::uint64_t{0});
  if (range && plan.answer.body().size() <= rule.at) return;
  status({rule.match, {}, 0, 400, -1, {}, {}}, request, plan);
}

struct Fault {
  std::string_view meaning;
  Apply apply;
};

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
      {"max_range", {"400 without a range, or for more than `at` bytes", max_range}},
      {"expire_after", {"ends each signed address after `at` bytes: then 403", nullptr}},
  };
  return table;
}

Result<FaultRule> rule_from(const boost::json::object& object) {
  FaultRule rule;
  MODELD_ASSIGN(rule.fault, json_string(object, "fault"));
  const auto number = [](const boost::json::object& in, std::string_view name, auto& out) {
    if (const auto* value = in.if_contains(name)) {
      out = value->to_number<std::decay_t<decltype(out)>>();
    }
  };
  const auto text = [](const boost::json::object& in, std::string_view name, std::string& out) {
    if (const auto* value = in.if_contains(name)) out = value->as_string();
  };
  number(object, "at", rule.at);
  number(object, "status", rule.status);
  number(object, "seconds", rule.seconds);
  text(object, "name", rule.name);
  text(object, "value", rule.value);
  const auto* match = object.if_contains("match");
  if (match == nullptr) return rule;
  const auto& in = match->as_object();
  text(in, "method", rule.match.method);
  text(in, "path", rule.match.path);
  number(in, "from", rule.match.from);
  number(in, "times", rule.match.times);
  if (const auto* origin = in.if_contains("origin")) {
    rule.match.origin = origin->as_string() == "data" ? Origin::data : Origin::hub;
  }
  if (const auto* ranged = in.if_contains("ranged")) rule.match.ranged = ranged->as_bool();
  if (const auto* covers = in.if_contains("covers")) {
    rule.match.covers = covers->to_number<std::uint64_t>();
  }
  return rule;
}

} // namespace

const std::vector<FaultName>& fault_names() {
  static const std::vector<FaultName> names = [] {
    std::vector<FaultName> all;
    for (const auto& [name, fault] : faults()) {
      all.push_back({name, fault.meaning});
    }
    return all;
  }();
  return names;
}

Result<void> FaultScript::add(FaultRule rule) {
  if (faults().count(rule.fault) == 0) {
    return fail(Errc::invalid_argument,
                fmt::format("reading fault '{}': not a known one", rule.fault));
  }
  const std::lock_guard lock(mutex_);
  rules_.push_back({std::move(rule), 0});
  return {};
}

Result<void> FaultScript::add_json(std::string_view text) {
  MODELD_ASSIGN(const boost::json::value value, parse_json(text, "the script"));
  try {
    for (const auto& item : value.at("rules").as_array()) {
      MODELD_ASSIGN(FaultRule rule, rule_from(item.as_object()));
      MODELD_TRY(add(std::move(rule)));
    }
  } catch (const std::exception& error) {
    return fail(Errc::malformed, fmt::format("reading the script: {}", error.what()));
  }
  return {};
}

void FaultScript::clear() {
  const std::lock_guard lock(mutex_);
  rules_.clear();
  used_targets_.clear();
  applied_ = 0;
}

unsigned FaultScript::applied() const {
  const std::lock_guard lock(mutex_);
  return applied_;
}

bool FaultScript::hits(Counted& counted, const Request& request) {
  const FaultMatch& match = counted.rule.match;
  if (match.origin && *match.origin != request.origin) return false;
  if (!match.method.empty() && match.method != request.method) return false;
  if (request.target.find(match.path) == std::string::npos) return false;
  const std::string_view header = request.header("Range");
  if (match.ranged && *match.ranged == header.empty()) return false;
  if (match.covers) {
    const auto range = parse_range(header, ~std::uint64_t{0});
    if (range && (*match.covers < range->first || *match.covers > range->last)) return false;
  }
  ++counted.seen;
  return counted.seen >= match.from &&
         (match.times == 0 || counted.seen < match.from + match.times);
}

SendPlan FaultScript::apply(const Request& request,
                            const std::function<Answer(const Request&)>& answer) {
  SendPlan plan;
  const std::lock_guard lock(mutex_);
  const auto it = std::find_if(rules_.begin(), rules_.end(),
                               [&](Counted& counted) { return hits(counted, request); });
  if (it == rules_.end()) {
    plan.answer = answer(request);
    return plan;
  }
  const FaultRule& rule = it->rule;
  ++applied_;
  plan.stalling = &stalling_;
  if (rule.fault == "whole_file") {
    Request whole = request;
    std::erase_if(whole.headers, [](const auto& field) { return field.first == "Range"; });
    plan.answer = answer(whole);
    return plan;
  }
  plan.answer = answer(request);
  if (rule.fault == "expire_after") {
    if (used_targets_.insert(request.target).second) {
      plan.close_after = rule.at;
    } else {
      status({{}, {}, 0, 403, -1, {}, {}}, request, plan);
    }
  } else {
    faults().at(rule.fault).apply(rule, request, plan);
  }
  return plan;
}

} // namespace modeld::test
