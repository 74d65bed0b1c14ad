// SPDX-License-Identifier: Apache-2.0
#include "quantize/encoder/regex.hpp"

#include "quantize/encoder/unicode_versions.hpp"

#include <fmt/format.h>
#include <oniguruma.h>

#include <array>
#include <mutex>
#include <string>

namespace modeld::quantize {
namespace {

// Steps of one match before we give up: a check text needs a few hundred.
constexpr unsigned long k_retry_limit = 1000000;

const OnigUChar* bytes_of(std::string_view text) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the library's type for bytes
  return reinterpret_cast<const OnigUChar*>(text.data());
}

void initialize_once() {
  static std::once_flag once;
  std::call_once(once, [] {
    std::array<OnigEncoding, 1> encodings{ONIG_ENCODING_UTF8};
    onig_initialize(encodings.data(), static_cast<int>(encodings.size()));
    onig_set_retry_limit_in_match(k_retry_limit);
    onig_set_retry_limit_in_search(k_retry_limit);
  });
}

std::string message_of(int code, const OnigErrorInfo* info) {
  std::array<OnigUChar, ONIG_MAX_ERROR_MESSAGE_LEN> text{};
  const int n = onig_error_code_to_str(text.data(), code, info);
  return {text.begin(), text.begin() + n};
}

struct RegionFree {
  void operator()(OnigRegion* region) const { onig_region_free(region, 1); }
};
using Region = std::unique_ptr<OnigRegion, RegionFree>;

std::size_t width_at(std::string_view text, std::size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  return lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

} // namespace

struct EncoderRegex::Compiled {
  regex_t* regex = nullptr;
  explicit Compiled(regex_t* owned) : regex(owned) {}
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() { onig_free(regex); }
};

Result<EncoderRegex> EncoderRegex::compile(std::string_view pattern) {
  initialize_once();
  regex_t* regex = nullptr;
  OnigErrorInfo info{};
  const int code = onig_new(&regex, bytes_of(pattern), bytes_of(pattern) + pattern.size(),
                            ONIG_OPTION_NONE, ONIG_ENCODING_UTF8, ONIG_SYNTAX_DEFAULT, &info);
  if (code != ONIG_NORMAL) {
    return fail(Errc::malformed, fmt::format("compiling the pattern '{}': {}",
                                             pattern.substr(0, 200), message_of(code, &info)));
  }
  EncoderRegex out;
  out.compiled_ = std::make_shared<const Compiled>(regex);
  return out;
}

Result<std::vector<EncoderRegex::Span>> EncoderRegex::find_all(std::string_view original) const {
  std::string known;
  if (has_newer_characters(original)) known = with_known_characters(original);
  const std::string_view text = known.empty() ? original : known;
  std::vector<Span> found;
  const Region region(onig_region_new());
  const OnigUChar* const begin = bytes_of(text);
  const OnigUChar* const end = begin + text.size();
  bool any = false;
  for (std::size_t at = 0; at <= text.size();) {
    const auto where =
        onig_search(compiled_->regex, begin, end, begin + at, end, region.get(), ONIG_OPTION_NONE);
    if (where == ONIG_MISMATCH) break;
    if (where < 0) {
      return fail(Errc::malformed, fmt::format("matching a pattern of tokenizer.json: {}",
                                               message_of(static_cast<int>(where), nullptr)));
    }
    const Span span(static_cast<std::size_t>(region->beg[0]),
                    static_cast<std::size_t>(region->end[0]));
    if (span.first == span.second && any && found.back().second == span.second) {
      if (at >= text.size()) break;
      at += width_at(text, at);
      continue;
    }
    found.push_back(span);
    any = true;
    at = span.second;
  }
  return found;
}

Result<int> EncoderRegex::first_group_at_start(std::string_view text) const {
  const Region region(onig_region_new());
  const OnigUChar* const begin = bytes_of(text);
  const auto n = onig_match(compiled_->regex, begin, begin + text.size(), begin, region.get(),
                            ONIG_OPTION_NONE);
  if (n < 0) return 0;
  for (int group = 1; group < region->num_regs; ++group) {
    if (region->beg[group] >= 0) return group;
  }
  return 0;
}

} // namespace modeld::quantize
