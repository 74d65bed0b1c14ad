// SPDX-License-Identifier: Apache-2.0
#include "store/tar.hpp"

#include "schema/model_ref.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <vector>

// POSIX.1-2001 pax interchange format, which is ustar with extended headers (type 'x') in front of
// files whose path is longer than 100 bytes or whose size has more than 33 bits. An extended
// header's body is lines "<length> <key>=<value>\n", where length counts the whole line.

namespace modeld::store {
namespace {

constexpr std::size_t k_name_bytes = 100;
constexpr std::uint64_t k_max_octal = (1ULL << 33) - 1;
constexpr std::uint64_t k_max_pax = 1U << 16;
constexpr std::size_t k_part = 1U << 18;

struct Field {
  std::size_t at;
  std::size_t size;
};
constexpr Field k_name{0, 100};
constexpr Field k_mode{100, 8};
constexpr Field k_uid{108, 8};
constexpr Field k_gid{116, 8};
constexpr Field k_size{124, 12};
constexpr Field k_mtime{136, 12};
constexpr Field k_sum{148, 8};
constexpr std::size_t k_type_at = 156;
constexpr Field k_magic{257, 8};
constexpr Field k_prefix{345, 155};

void put_octal(std::string& block, Field field, std::uint64_t value) {
  const std::string text = fmt::format("{:0{}o}", value, field.size - 1);
  block.replace(field.at, text.size(), text);
}

std::uint64_t sum_of(std::string_view block) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < block.size(); ++i) {
    const bool in_sum = i >= k_sum.at && i < k_sum.at + k_sum.size;
    sum += in_sum ? static_cast<std::uint64_t>(' ') : static_cast<unsigned char>(block[i]);
  }
  return sum;
}

std::string block_of(std::string_view name, std::uint64_t size, char type) {
  std::string block(k_tar_block, '\0');
  block.replace(k_name.at, std::min(name.size(), k_name_bytes), name.substr(0, k_name_bytes));
  put_octal(block, k_mode, 0444);
  put_octal(block, k_uid, 0);
  put_octal(block, k_gid, 0);
  put_octal(block, k_size, size);
  put_octal(block, k_mtime, 0);
  block[k_type_at] = type;
  block.replace(k_magic.at, 8, std::string_view("ustar\00000", 8));
  const std::string sum = fmt::format("{:06o}", sum_of(block));
  block.replace(k_sum.at, 6, sum);
  block[k_sum.at + 7] = ' ';
  return block;
}

std::string pax_line(std::string_view key, std::string_view value) {
  const std::size_t rest = key.size() + value.size() + 3; // space, '=', line feed
  std::size_t length = rest + 1;
  while (std::to_string(length).size() + rest != length) {
    ++length;
  }
  return fmt::format("{} {}={}\n", length, key, value);
}

std::string field_text(std::string_view block, Field field) {
  const auto text = block.substr(field.at, field.size);
  return std::string(text.substr(0, std::min(text.find('\0'), text.size())));
}

Result<std::uint64_t> parse_octal(std::string_view block, Field field) {
  std::string text = field_text(block, field);
  text.erase(0, std::min(text.find_first_not_of(' '), text.size()));
  text.erase(std::min(text.find(' '), text.size()));
  std::uint64_t value = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), value, 8);
  if (bad == std::errc() && end == text.data() + text.size()) return value;
  return fail(Errc::malformed, fmt::format("reading a tar header: '{}' is no octal number", text));
}

Result<std::uint64_t> parse_decimal(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (bad == std::errc() && end == text.data() + text.size()) return value;
  return fail(Errc::malformed, fmt::format("reading a tar header: '{}' is no number", text));
}

} // namespace

std::size_t tar_padding(std::uint64_t size) {
  return static_cast<std::size_t>((k_tar_block - size % k_tar_block) % k_tar_block);
}

std::string tar_end() {
  return std::string(2 * k_tar_block, '\0');
}

std::string tar_header(const TarEntry& entry) {
  std::string pax;
  if (entry.path.size() > k_name_bytes) pax += pax_line("path", entry.path);
  if (entry.size > k_max_octal) pax += pax_line("size", std::to_string(entry.size));
  std::string header;
  if (!pax.empty()) {
    header = block_of("pax_header", pax.size(), 'x') + pax;
    header.append(tar_padding(pax.size()), '\0');
  }
  return header + block_of(entry.path, std::min(entry.size, k_max_octal), '0');
}

Result<void> TarReader::skip(std::uint64_t bytes) {
  std::vector<std::byte> part(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, k_part)));
  while (bytes > 0) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, part.size()));
    MODELD_TRY(read_(std::span(part).first(n)));
    bytes -= n;
  }
  return {};
}

Result<void> TarReader::finish_entry() {
  MODELD_TRY(skip(left_ + padding_));
  left_ = 0;
  padding_ = 0;
  return {};
}

Result<std::optional<TarReader::Header>> TarReader::read_header() {
  std::string block(k_tar_block, '\0');
  MODELD_TRY(read_(std::as_writable_bytes(std::span(block))));
  if (block.find_first_not_of('\0') == std::string::npos) return std::nullopt;
  MODELD_ASSIGN(const auto sum, parse_octal(block, k_sum));
  if (sum != sum_of(block)) {
    return fail(Errc::malformed,
                fmt::format("reading a tar header: sum {}, expected {}", sum, sum_of(block)));
  }
  Header header;
  header.entry.path = field_text(block, k_name);
  if (const auto prefix = field_text(block, k_prefix); !prefix.empty()) {
    header.entry.path = prefix + '/' + header.entry.path;
  }
  MODELD_ASSIGN(header.entry.size, parse_octal(block, k_size));
  header.type = block[k_type_at];
  return header;
}

Result<void> TarReader::read_pax(std::uint64_t size, TarEntry& next) {
  if (size > k_max_pax) {
    return fail(Errc::malformed,
                fmt::format("reading a tar header: {} bytes of attributes, allowed "
                            "are {}",
                            size, k_max_pax));
  }
  std::string body(static_cast<std::size_t>(size), '\0');
  MODELD_TRY(read_(std::as_writable_bytes(std::span(body))));
  MODELD_TRY(skip(tar_padding(size)));
  for (std::string_view rest = body; !rest.empty();) {
    const auto space = rest.find(' ');
    const auto equals = rest.find('=');
    if (space == std::string_view::npos || equals == std::string_view::npos || equals < space) {
      return fail(Errc::malformed, "reading a tar header: an attribute without a name");
    }
    MODELD_ASSIGN(const auto length, parse_decimal(rest.substr(0, space)));
    if (length > rest.size() || length < equals + 2 || rest[length - 1] != '\n') {
      return fail(Errc::malformed, fmt::format("reading a tar header: an attribute of {} bytes, {} "
                                               "are left",
                                               length, rest.size()));
    }
    const auto key = rest.substr(space + 1, equals - space - 1);
    const auto value = rest.substr(equals + 1, length - equals - 2);
    if (key == "path") next.path = value;
    if (key == "size") {
      MODELD_ASSIGN(next.size, parse_decimal(value));
    }
    rest.remove_prefix(length);
  }
  return {};
}

Result<std::optional<TarEntry>> TarReader::next() {
  MODELD_TRY(finish_entry());
  constexpr std::uint64_t k_unset = ~0ULL;
  TarEntry extended{{}, k_unset};
  for (;;) {
    MODELD_ASSIGN(auto header, read_header());
    if (!header) return std::nullopt;
    if (header->type == 'x') {
      MODELD_TRY(read_pax(header->entry.size, extended));
      continue;
    }
    if (header->type == 'g' || header->type == '5') {
      MODELD_TRY(skip(header->entry.size + tar_padding(header->entry.size)));
      continue;
    }
    if (header->type != '0' && header->type != '\0') {
      return fail(Errc::unsupported, fmt::format("reading an archive: '{}' is of type '{}'; only "
                                                 "plain files are allowed",
                                                 header->entry.path, header->type));
    }
    TarEntry entry = std::move(header->entry);
    if (!extended.path.empty()) entry.path = extended.path;
    if (extended.size != k_unset) entry.size = extended.size;
    if (entry.path.starts_with("./")) entry.path.erase(0, 2);
    MODELD_TRY(check_repo_path(entry.path));
    left_ = entry.size;
    padding_ = tar_padding(entry.size);
    return entry;
  }
}

Result<void> TarReader::copy_to(ByteSink& sink) {
  std::vector<std::byte> part(static_cast<std::size_t>(std::min<std::uint64_t>(left_, k_part)));
  while (left_ > 0) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(left_, part.size()));
    MODELD_TRY(read_(std::span(part).first(n)));
    left_ -= n;
    MODELD_TRY(sink.write(std::span(part).first(n)));
  }
  return {};
}

Result<std::string> TarReader::text(std::uint64_t limit) {
  if (left_ > limit) {
    return fail(Errc::malformed,
                fmt::format("reading an archive: a record of {} bytes, allowed are "
                            "{}",
                            left_, limit));
  }
  std::string text(static_cast<std::size_t>(left_), '\0');
  MODELD_TRY(read_(std::as_writable_bytes(std::span(text))));
  left_ = 0;
  return text;
}

} // namespace modeld::store
