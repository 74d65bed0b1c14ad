// SPDX-License-Identifier: Apache-2.0
#include "fetch/retry.hpp"

#include <catch2/catch.hpp>

using namespace modeld::fetch;
using std::chrono::milliseconds;

TEST_CASE("is_retryable_status separates what time mends from what it does not",
          "[fetch][retry][pitfall-23]") {
  for (const unsigned status : {408u, 425u, 429u, 500u, 502u, 503u, 504u, 522u})
    CHECK(is_retryable_status(status));
  for (const unsigned status : {200u, 301u, 400u, 401u, 403u, 404u, 410u, 416u, 501u, 505u}) {
    CHECK_FALSE(is_retryable_status(status));
  }
}

TEST_CASE("backoff doubles up to half a minute and jitters by half", "[fetch][retry][pitfall-27]") {
  CHECK(backoff(1, 0.0) == milliseconds(500));
  CHECK(backoff(1, 0.999999) <= milliseconds(1000));
  CHECK(backoff(3, 0.0) == milliseconds(2000));
  for (const unsigned failures : {6u, 7u, 100u, 4'000'000'000u}) {
    CHECK(backoff(failures, 0.0) == milliseconds(15'000));
    CHECK(backoff(failures, 0.999999) <= milliseconds(30'000));
  }
}

TEST_CASE("RetryBudget::take never goes below zero", "[fetch][retry]") {
  RetryBudget budget(milliseconds(100));
  CHECK(budget.take(milliseconds(60)));
  CHECK_FALSE(budget.take(milliseconds(41)));
  CHECK(budget.take(milliseconds(40)));
  CHECK_FALSE(budget.take(milliseconds(1)));
}

TEST_CASE("Attempts::failed ends after the allowed number in a row", "[fetch][retry]") {
  Attempts attempts(3);
  CHECK(attempts.failed(0));
  CHECK(attempts.failed(0));
  CHECK_FALSE(attempts.failed(0));
  attempts.progressed();
  CHECK(attempts.failed(0) == milliseconds(500));
}
