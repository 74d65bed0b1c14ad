// SPDX-License-Identifier: Apache-2.0
// config.json and generation_config.json beside weights that are there.
#include "fuzz.hpp"
#include "one_file_set.hpp"

#include "validate/repository.hpp"

using namespace modeld::fuzz;
using namespace modeld::validate;

namespace {

/// One embedding of 16 rows of 8, one layer's query.
const std::string& weights() {
  static const std::string file = [] {
    std::string json =
        R"({"model.embed_tokens.weight":{"dtype":"U8","shape":[16,8],"data_offsets":[0,128]},)"
        R"("model.layers.0.self_attn.q_proj.weight":{"dtype":"U8","shape":[8,8],"data_offsets":[128,192]}})";
    std::string out(8, '\0');
    out[0] = static_cast<char>(json.size() & 0xFF);
    out[1] = static_cast<char>(json.size() >> 8);
    return out + json + std::string(192, '\1');
  }();
  return file;
}

} // namespace

int modeld::fuzz::fuzz_config(const std::uint8_t* data, std::size_t size) {
  const auto text = bytes_of(data, size);
  const BorrowedFiles files({{"config.json", text},
                             {"generation_config.json", text},
                             {"model.safetensors", std::as_bytes(std::span(weights()))}});
  for (const Profile profile : {Profile::strict, Profile::compat}) {
    CheckOptions options;
    options.profile = profile;
    const auto checked = check_repository(files, options);
    require(checked.size() >= 3, "a file without a result");
  }
  return 0;
}
