// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"
#include "tests/hub/connection.hpp"
#include "tests/hub/http_message.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::test {

/// Which requests a fault hits. All that is given has to hold.
struct FaultMatch {
  std::optional<Origin> origin;
  std::string method = "GET";          ///< empty: any
  std::string path;                    ///< is part of the undecoded target; empty: any
  std::optional<bool> ranged;          ///< with or without a Range header
  std::optional<std::uint64_t> covers; ///< this byte is in the range (or no range was asked for)
  unsigned from = 1;                   ///< the first one of those that match, counted from 1
  unsigned times = 1;                  ///< how many of them; 0: all from there on
};

/// One kind of misbehaviour with its parameters. Names and meanings: fault_names().
struct FaultRule {
  FaultMatch match;
  std::string fault;
  std::uint64_t at = 0;      ///< a byte of the answer's body
  unsigned status = 0;       ///< "status", "redirect"
  std::int64_t seconds = -1; ///< Retry-After or reset of the rate limit; below 0: none
  std::string name;          ///< of a header
  std::string value;         ///< of a header; Location; body
};

struct FaultName {
  std::string_view name;
  std::string_view meaning;
};
/// Every fault that the Hub knows, with its parameters in words.
const std::vector<FaultName>& fault_names();

/// Misbehaviour by script: rules in order, of which the first that matches a request is applied to
/// its answer. Counts requests, so it is stateful; any thread.
class FaultScript {
public:
  /// invalid_argument for a name that is not in fault_names().
  Result<void> add(FaultRule rule);
  /// {"rules":[{"match":{"origin":"data","path":...},"fault":"cut","at":1000}, ...]}
  Result<void> add_json(std::string_view text);
  void clear();

  /// `answer` is what an honest Hub says; asked at most once.
  SendPlan apply(const Request& request, const std::function<Answer(const Request&)>& answer);
  /// How often any rule was applied.
  unsigned applied() const;
  /// Connections that a fault keeps silent at the moment.
  int stalling() const { return stalling_; }

private:
  struct Counted {
    FaultRule rule;
    unsigned seen = 0;
  };
  static bool hits(Counted& counted, const Request& request);

  mutable std::mutex mutex_;
  std::vector<Counted> rules_;
  std::set<std::string> used_targets_; ///< "expire_after"
  unsigned applied_ = 0;
  std::atomic<int> stalling_{0};
};

} // namespace modeld::test
