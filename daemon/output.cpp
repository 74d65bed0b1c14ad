// SPDX-License-Identifier: Apache-2.0
#include "daemon/output.hpp"

#include "daemon/safe_json.hpp"
#include "daemon/terminal_text.hpp"
#include "daemon/terminal_width.hpp"
#include "schema/api.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace modeld::daemon {
namespace {

void write_line(std::FILE* file, std::string_view line) {
  std::fwrite(line.data(), 1, line.size(), file);
  std::fputc('\n', file);
}

bool can_draw() {
  const char* term = std::getenv("TERM");
  return isatty(STDERR_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

// Where a text of so many bytes may end without cutting a character of UTF-8.
std::string_view cut(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80)
    --bytes;
  return text.substr(0, bytes);
}

} // namespace

Output::Output() : terminal_(can_draw()) {}

void Output::result(std::string_view line) {
  progress({});
  write_line(stdout, line);
}

void Output::text(std::string_view lines) {
  result(terminal_lines(lines));
}

void Output::result(const boost::json::object& object) {
  progress({});
  write_line(stdout, safe_json(object));
}

void Output::message(std::string_view line) {
  if (quiet_) return;
  progress({});
  std::fflush(stdout); // where both go to one place, lines stay in order
  write_line(stderr, terminal_lines(line));
}

void Output::progress(std::string_view line) {
  if (!terminal_ || quiet_ || (line.empty() && !drawn_)) return;
  // Carriage return and "erase to the end of the line" (ECMA-48 EL).
  fmt::print(stderr, "\r{}\033[K", cut(terminal_text(line), terminal_width()));
  std::fflush(stderr);
  drawn_ = !line.empty();
}

void Output::error(const Error& error) {
  progress({});
  if (json_) write_line(stdout, safe_json({{"error", api::error_to_json(error)}}));
  std::fflush(stdout);
  if (!error.hint.empty()) write_line(stderr, "hint: " + terminal_text(error.hint));
  write_line(stderr,
             fmt::format("error: {} [{}]", terminal_text(error.message), info(error.code).slug));
}

bool Output::flush() {
  return std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
}

} // namespace modeld::daemon
