// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/file_set.hpp"
#include "schema/progress.hpp"
#include "schema/result.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace modeld::daemon {

/// An account of every tensor of a checkpoint, to the byte, and of what conversion makes of them.
struct Audit {
  struct File {
    std::string path;
    std::uint64_t size = 0;
    std::uint64_t header = 0;  ///< the length and the JSON
    std::uint64_t padding = 0; ///< of the header's, the spaces behind the JSON
    std::uint64_t data = 0;    ///< of all tensors
    std::uint64_t tensors = 0;
  };
  struct OfType {
    std::uint64_t tensors = 0;
    std::uint64_t elements = 0;
    std::uint64_t bytes = 0;
  };
  /// What a finished GGUF file says when it is read again.
  struct Output {
    std::uint64_t tensors = 0;
    std::uint64_t compared = 0; ///< F32, F16 and BF16 tensors whose every byte was made again
    std::vector<std::string> missing;
    std::vector<std::string> extra;
    std::vector<std::string> other_shape;
    std::vector<std::string> other_values;
  };

  std::vector<File> files;
  std::map<std::string, OfType> types;
  std::optional<std::uint64_t> declared_bytes; ///< total_size of the index
  std::vector<std::string> faults;             ///< what config and tensors contradict each other in
  std::optional<bool> tied;                    ///< no output tensor beside the embedding
  std::string conversion_error;                ///< why it cannot be converted; empty where it can
  std::uint64_t planned = 0;                   ///< output tensors of a conversion
  std::vector<std::string> left_out;           ///< source tensors that a rule leaves out
  std::optional<Output> output;

  std::uint64_t tensors() const;
  std::uint64_t elements() const;
  std::uint64_t bytes() const;
  /// Whether every account balances.
  bool balanced() const;
};

/// Reads headers, and with a GGUF file all data. malformed where a header is.
Result<Audit> audit(const FileSet& files, std::span<const std::byte> gguf, Progress& progress);

std::string audit_text(const Audit& audit);
boost::json::object audit_json(const Audit& audit);

} // namespace modeld::daemon
