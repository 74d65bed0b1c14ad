// SPDX-License-Identifier: Apache-2.0
// tokenizer.json and tokenizer_config.json.
#include "fuzz.hpp"
#include "one_file_set.hpp"

#include "validate/repository.hpp"
#include "validate/tokenizer_vocab.hpp"

using namespace modeld::fuzz;
using namespace modeld::validate;

int modeld::fuzz::fuzz_tokenizer(const std::uint8_t* data, std::size_t size) {
  TokenizerVocab vocab;
  Report report("tokenizer.json");
  vocab.read(text_of(data, size), report);
  if (report.accepted()) require(vocab.max_id() < (std::uint64_t{1} << 31), "an id out of range");
  const auto text = bytes_of(data, size);
  check_repository(BorrowedFiles({{"tokenizer.json", text}, {"tokenizer_config.json", text}}),
                   CheckOptions{});
  return 0;
}
