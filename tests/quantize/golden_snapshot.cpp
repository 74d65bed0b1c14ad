// SPDX-License-Identifier: Apache-2.0
#include "tests/quantize/golden_snapshot.hpp"

#include "tests/quantize/golden_weights.hpp"

#include <boost/json.hpp>

namespace json = boost::json;
namespace fs = std::filesystem;

namespace modeld::test {

std::string stream_file(const std::string& header) {
  return golden_stream_file(header);
}

MemoryFiles golden_snapshot(const fs::path& case_folder, const std::string& model_dir) {
  MemoryFiles files = MemoryFiles::from_folder(case_folder / "snapshot" / model_dir);
  const fs::path weights = case_folder / "weights.json";
  if (!fs::exists(weights)) return files;
  const json::value all = json::parse(read_file(weights));
  for (const json::value& file : all.as_array()) {
    files.put(std::string(file.as_object().at("file").as_string()),
              golden_weight_file(file.as_object()));
  }
  return files;
}

} // namespace modeld::test
