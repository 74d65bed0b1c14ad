// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace modeld::store {

/// What other runtimes want to be told about a GGUF file.
struct GgufFacts {
  std::string architecture;     ///< general.architecture
  std::uint64_t parameters = 0; ///< elements of all tensors
  std::string file_type;        ///< "Q4_K_M"; empty where the file does not say
  std::string chat_template;    ///< tokenizer.chat_template
  std::string license;          ///< general.license
};

/// Reads them from a mapped file's metadata. For untrusted files call it in a worker.
Result<GgufFacts> read_gguf_facts(std::span<const std::byte> file, std::string_view path);

} // namespace modeld::store
