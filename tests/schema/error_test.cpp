// SPDX-License-Identifier: Apache-2.0
#include "schema/error.hpp"

#include <catch2/catch.hpp>

#include <cerrno>
#include <set>

using namespace modeld;

TEST_CASE("every error code has one row, in order, with a slug of its own", "[schema][error]") {
  std::set<std::string_view> slugs;
  int expected = 0;
  for (const ErrcInfo& row : all_error_codes()) {
    CHECK(static_cast<int>(row.code) == expected++);
    CHECK(slugs.insert(row.slug).second);
    CHECK(row.http_status >= 400);
    CHECK(row.exit_status > 0);
    CHECK(errc_from_slug(row.slug) == row.code);
    CHECK(info(row.code).code == row.code);
  }
  CHECK(static_cast<int>(Errc::internal) + 1 == expected);
}

TEST_CASE("exit statuses are those of the design, section 5", "[schema][error]") {
  CHECK(info(Errc::invalid_argument).exit_status == 2);
  CHECK(info(Errc::not_found).exit_status == 3);
  CHECK(info(Errc::malformed).exit_status == 4);
  CHECK(info(Errc::digest_mismatch).exit_status == 4);
  CHECK(info(Errc::denied).exit_status == 5);
  CHECK(info(Errc::no_space).exit_status == 6);
  CHECK(info(Errc::net_transient).exit_status == 7);
  CHECK(info(Errc::net_permanent).exit_status == 7);
  CHECK(info(Errc::unreachable).exit_status == 8);
  CHECK(info(Errc::cancelled).exit_status == 130);
}

TEST_CASE("from_errno maps a full disk and a quota to no_space", "[schema][error]") {
  CHECK(from_errno(ENOSPC, "writing 'x'").code == Errc::no_space);
  CHECK(from_errno(EDQUOT, "writing 'x'").code == Errc::no_space);
  CHECK(from_errno(EIO, "writing 'x'").code == Errc::io);
  CHECK(from_errno(EACCES, "opening 'x'").message == "opening 'x': Permission denied");
}

TEST_CASE("Error::context puts what was done in front", "[schema][error]") {
  const Error error = Error{Errc::io, "reading 'a': short", {}, {}, 0}.context("importing 'b'");
  CHECK(error.message == "importing 'b': reading 'a': short");
}
