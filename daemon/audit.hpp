// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/file_set.hpp"
#include "schema/progress.hpp"
#include "schema/result.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
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
  /// A tensor that conversion makes.
  struct Made {
    std::string name;
    std::string type;
    std::vector<std::uint64_t> ne;    ///< fastest dimension first
    std::vector<std::string> sources; ///< the checkpoint's tensors; none: made by the converter
    std::string operations;           ///< what is done to them; empty: nothing
    std::string sha256;               ///< of its data in the GGUF file, where that was compared
  };
  /// What a finished GGUF file says when it is read again.
  struct Output {
    std::vector<std::string> files;
    std::uint64_t tensors = 0;
    std::uint64_t compared = 0; ///< F32, F16 and BF16 tensors whose every byte was made again
    std::vector<std::string> missing;
    std::vector<std::string> extra;
    std::vector<std::string> other_shape;
    std::vector<std::string> other_values; ///< with the first element that differs
  };

  std::vector<File> files;
  std::map<std::string, OfType> types;
  std::optional<std::uint64_t> declared_bytes; ///< total_size of the index
  std::vector<std::string> faults;             ///< what config and tensors contradict each other in
  std::optional<bool> tied;                    ///< no output tensor beside the embedding
  std::string conversion_error;                ///< why it cannot be converted; empty where it can
  std::vector<Made> made;                      ///< in the order of the output
  std::vector<std::string> left_out;           ///< source tensors that a rule leaves out
  std::vector<std::string> not_used;           ///< source tensors without any account
  /// Source tensors of which several outputs are made: split, or shared by several blocks.
  std::vector<std::string> used_often;
  std::optional<Output> output;

  std::uint64_t tensors() const;
  std::uint64_t elements() const;
  std::uint64_t bytes() const;
  /// Whether every account balances.
  bool balanced() const;
};

/// The GGUF file of an audit; of a split, its first part.
struct AuditedOutput {
  const FileSet& files;
  std::string_view path;
};

/// Reads headers, and with a GGUF file all data. malformed where a header is; cancelled.
Result<Audit> audit(const FileSet& files, const std::optional<AuditedOutput>& output,
                    Progress& progress);

/// With `every`, a line for every output tensor.
std::string audit_text(const Audit& audit, bool every);
boost::json::object audit_json(const Audit& audit);

/// Compares a GGUF file with what the checkpoint becomes, and fills in the digests of `made`.
Result<Audit::Output> audit_output(const FileSet& files, const AuditedOutput& output,
                                   std::vector<Audit::Made>& made, Progress& progress);

} // namespace modeld::daemon
