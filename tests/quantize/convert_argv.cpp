// SPDX-License-Identifier: Apache-2.0
#include "tests/quantize/convert_argv.hpp"

#include "schema/json.hpp"
#include "tests/support/memory_files.hpp"

#include <boost/json.hpp>

#include <cstdlib>

namespace fs = std::filesystem;
namespace json = boost::json;

namespace modeld::test {

using namespace quantize;

ConvertRun run_of(const json::array& argv, const fs::path& folder) {
  ConvertRun run;
  const auto text = [&argv](std::size_t i) { return std::string(argv.at(i).as_string()); };
  for (std::size_t i = 0; i < argv.size(); ++i) {
    const std::string option = text(i);
    if (option == "--outtype") {
      run.options.outtype = text(++i);
    } else if (option == "--bigendian") {
      run.options.big_endian = true;
    } else if (option == "--vocab-only") {
      run.options.vocab_only = true;
    } else if (option == "--model-name") {
      run.options.model_name = text(++i);
    } else if (option == "--metadata") {
      const fs::path path = folder / text(++i);
      if (!fs::exists(path)) continue; // the reference goes on without it
      run.options.metadata = parse_json(read_file(path), "metadata").value().as_object();
    } else if (option == "--split-max-tensors") {
      run.split_tensors = std::strtoull(text(++i).c_str(), nullptr, 10);
    } else if (option == "--split-max-size") {
      run.split_bytes = parse_split_size(text(++i)).value();
    } else if (option == "--no-tensor-first-split") {
      run.empty_first = true;
    } else if (option == "--no-mtp") {
      run.options.no_mtp = true;
    } else if (option == "--mtp") {
      run.options.mtp_only = true;
    } else if (option == "--fp8-as-q8") {
      run.options.fp8_as_q8 = true;
    } else if (option == "--sentence-transformers-dense-modules") {
      run.options.dense_modules = true;
    } else if (option == "--mistral-format") {
      run.options.mistral_format = true;
    } else if (option == "--disable-mistral-community-chat-template") {
      run.options.community_template = false;
    } else if (option == "--mmproj") {
      run.options.mmproj = true;
    } else if (option == "--fuse-gate-up-exps") {
      run.options.fuse_gate_up = true;
    } else if (option == "--outfile" || option == "--base") {
      ++i;
    } else if (option == "--no-lazy" || option == "--use-temp-file") {
      continue; // how the reference works, not what it writes
    } else {
      run.unknown = option;
    }
  }
  return run;
}

} // namespace modeld::test
