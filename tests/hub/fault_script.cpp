// SPDX-License-Identifier: Apache-2.0
#include "tests/hub/fault_script.hpp"

#include "schema/json.hpp"
#include "tests/hub/fault_table.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace modeld::test {
namespace {

Request without_range(Request request) {
  std::erase_if(request.headers, [](const auto& field) { return field.first == "Range"; });
  return request;
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
    plan.answer = answer(without_range(request));
    return plan;
  }
  if (rule.fault == "replaced") {
    const std::string_view condition = request.header("If-Range");
    const bool same = condition.empty() || condition == k_other_etag;
    Request unconditional = request;
    std::erase_if(unconditional.headers, [](const auto& f) { return f.first == "If-Range"; });
    plan.answer = answer(same ? unconditional : without_range(request));
    answer_replaced(rule, request, plan);
    return plan;
  }
  plan.answer = answer(request);
  if (rule.fault == "expire_after") {
    if (used_targets_.insert(request.target).second) {
      plan.close_after = rule.at;
    } else {
      answer_status({{}, {}, 0, 403, -1, {}, {}}, plan);
    }
  } else {
    faults().at(rule.fault).apply(rule, request, plan);
  }
  return plan;
}

} // namespace modeld::test
