// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/recipe/importance.hpp"
#include "schema/result.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::quantize {

/// An importance matrix as llama-imatrix wrote it: for each tensor the sums of squared activations
/// of its input columns, and how many tokens they were summed over.
struct ImatrixFile {
  struct Entry {
    std::vector<float> sums;          ///< counts.size() rows of equal length
    std::vector<std::int64_t> counts; ///< one for each expert; of the old form: one, of calls
  };

  std::map<std::string, Entry> entries; ///< by tensor name
  std::vector<std::string> datasets;
  int chunks = 0;
  int chunk_size = 0;  ///< tokens; 0 unknown
  bool legacy = false; ///< the .dat form: sums are means times calls already
};

/// The GGUF form (tensors NAME.in_sum2 and NAME.counts) or the old .dat form (little endian: number
/// of entries; for each: length, name, calls, number of values, values; then calls in all, length
/// and name of the data set), told by the magic. Every length is compared with what is left.
Result<ImatrixFile> read_imatrix(std::span<const std::byte> file, std::string_view path);

struct ImatrixFilter {
  std::vector<std::string> include; ///< keep entries whose name has one of these in it
  std::vector<std::string> exclude; ///< drop those; not both
};

/// Mean squares, ready for use. An expert that no token ever reached gets the neutral weight 1 and
/// a warning (failure case B03); NaN, infinite and negative values are malformed (B04). `text`: how
/// the file is to be named in the metadata. Where the filter leaves nothing, there are no entries.
Result<Importance> make_importance(const ImatrixFile& file, std::string text,
                                   const ImatrixFilter& filter);

/// What one entry looks like, for people.
struct ImatrixStatistics {
  std::string name;
  std::size_t columns = 0;
  std::size_t experts = 1;
  std::size_t unused_experts = 0;
  std::int64_t tokens = 0; ///< of the busiest expert
  double sum = 0;          ///< of mean squares, all experts
  double mean = 0;
  double deviation = 0;
  double min = 0;
  double max = 0;
  double active = 0;  ///< share of columns above 1e-5
  double entropy = 0; ///< in bits, of the columns' shares of the sum
};

/// In the order of the layers.
std::vector<ImatrixStatistics> imatrix_statistics(const ImatrixFile& file);

} // namespace modeld::quantize
