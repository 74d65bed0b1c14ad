// SPDX-License-Identifier: Apache-2.0
#include "daemon/human_text.hpp"

#include <catch2/catch.hpp>

using namespace modeld;
using namespace modeld::daemon;
using Catch::Contains;

TEST_CASE("human_bytes uses the largest unit that fits", "[daemon][human_text]") {
  CHECK(human_bytes(0) == "0 B");
  CHECK(human_bytes(1023) == "1023 B");
  CHECK(human_bytes(1024) == "1.0 KiB");
  CHECK(human_bytes((1U << 20) - 1) == "1.0 MiB");
  CHECK(human_bytes(1536U << 20) == "1.5 GiB");
  CHECK(human_bytes(UINT64_MAX) == "16.0 EiB");
}

TEST_CASE("progress_line tells phase, share, bytes, rate and time left", "[daemon][human_text]") {
  api::Job job;
  job.state = "running";
  job.phase = "downloading";
  job.done = 256U << 20;
  job.total = 1U << 30;
  job.rate = 64U << 20;
  const std::string line = progress_line(job, 200);
  CHECK_THAT(line, Contains("downloading") && Contains("######......") && Contains(" 25%") &&
                       Contains("256.0 MiB of 1.0 GiB") && Contains("64.0 MiB/s") &&
                       Contains("0:12 left"));
  // A narrow terminal has no room for the bar; the numbers say more.
  CHECK(progress_line(job, 70) == "downloading  25%  256.0 MiB of 1.0 GiB  64.0 MiB/s  0:12 left");
  CHECK(progress_line(job, 30).size() == 30);
  job.phase = "resolving";
  job.done = job.total = job.rate = 0;
  CHECK(progress_text(job) == "resolving");
  job.notice = "waiting";
  CHECK(progress_text(job) == "resolving: waiting");
}

TEST_CASE("table makes columns as wide as they must be", "[daemon][human_text]") {
  CHECK(table({{"A", "LONG", "C"}, {"xyz", "b", "c"}}) == "A    LONG  C\nxyz  b     c");
}
