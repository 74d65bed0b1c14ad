// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace modeld::validate {

/// What a finding means for the file: information, a warning, or refusal.
enum class Severity : std::uint8_t { info, warning, error };

/// strict refuses what any careful reader may trip over; compat takes what the format's own
/// reader takes, but never anything that is unsafe to read.
enum class Profile : std::uint8_t { strict, compat };

/// "I", "W", "E".
std::string_view letter(Severity severity);
/// error under strict, warning under compat: the rules that the specification marks E/W.
constexpr Severity error_if_strict(Profile profile) {
  return profile == Profile::strict ? Severity::error : Severity::warning;
}

/// The default limits of validation.md 0.4; hitting one is GN-08 and names the limit.
struct Limits {
  std::uint64_t index_bytes = std::uint64_t{64} << 20;
  std::uint64_t config_bytes = std::uint64_t{16} << 20;
  std::uint64_t tokenizer_bytes = std::uint64_t{256} << 20;
  std::uint64_t safetensors_tensors = 1'000'000;
  std::size_t safetensors_depth = 8;
  std::uint64_t gguf_metadata_bytes = std::uint64_t{512} << 20;
  std::uint64_t gguf_string_bytes = std::uint64_t{64} << 20;
  std::uint64_t gguf_array_elements = 16'777'216;
  std::uint64_t gguf_kv = 100'000;
  std::uint64_t gguf_tensors = 1'000'000;
  std::uint64_t chat_template_bytes = std::uint64_t{1} << 20;
};

/// One thing that a rule has to say about a file. Text that came out of the file is already
/// escaped (escape.hpp), so a finding may go to a terminal or into a report as it is.
struct Finding {
  std::string_view rule; ///< "ST-02"; a literal
  Severity severity = Severity::error;
  std::string path;                    ///< of the file, as the caller named it
  std::optional<std::uint64_t> offset; ///< of the bytes in question, from the file's start
  std::string message;                 ///< what was found and what is allowed; no full stop
  std::string hint;                    ///< what to do next; may be empty
};

/// The findings about one file, or about one set of files. Keeps the first k_cap findings and
/// counts all. One owner, one thread.
class Report {
public:
  static constexpr std::size_t k_cap = 1000;

  explicit Report(std::string path = {}, Profile profile = Profile::strict)
      : path_(std::move(path)), profile_(profile) {}

  void add(std::string_view rule, Severity severity, std::optional<std::uint64_t> offset,
           std::string message, std::string hint = {});
  void error(std::string_view rule, std::optional<std::uint64_t> offset, std::string message,
             std::string hint = {}) {
    add(rule, Severity::error, offset, std::move(message), std::move(hint));
  }
  void warn(std::string_view rule, std::optional<std::uint64_t> offset, std::string message,
            std::string hint = {}) {
    add(rule, Severity::warning, offset, std::move(message), std::move(hint));
  }
  void note(std::string_view rule, std::optional<std::uint64_t> offset, std::string message,
            std::string hint = {}) {
    add(rule, Severity::info, offset, std::move(message), std::move(hint));
  }
  /// Takes over all findings of another report, paths included.
  void merge(Report other);

  const std::string& path() const { return path_; }
  /// Findings from here on are about this file.
  void set_path(std::string path) { path_ = std::move(path); }
  Profile profile() const { return profile_; }
  const std::vector<Finding>& findings() const { return findings_; }
  /// Whether further findings are only counted: loops may stop composing messages.
  bool full() const { return findings_.size() >= k_cap; }
  std::size_t errors() const { return errors_; }
  std::size_t warnings() const { return warnings_; }
  /// Found, but beyond the cap.
  std::size_t dropped() const { return dropped_; }
  bool accepted() const { return errors_ == 0; }
  bool has(std::string_view rule) const;
  bool has(std::string_view rule, Severity severity) const;

  /// The first error as malformed, for a caller that wants one reason; its details are "rule" and,
  /// where known, "offset" and "path". Nothing where the file was accepted.
  std::optional<Error> first_error() const;

private:
  std::string path_;
  Profile profile_;
  std::vector<Finding> findings_;
  std::size_t errors_ = 0;
  std::size_t warnings_ = 0;
  std::size_t dropped_ = 0;
  std::optional<Finding> first_error_beyond_cap_;
};

/// What a parser makes of a file: the description, where its structure could be read at all, and
/// the findings. The description may be used only where the report has no error.
template <class T>
struct Checked {
  std::optional<T> value;
  Report report;

  bool accepted() const { return value.has_value() && report.accepted(); }
  /// The description, or the first error.
  Result<T> take() && {
    if (auto error = report.first_error()) return fail(*std::move(error));
    return *std::move(value);
  }
};

} // namespace modeld::validate
