// SPDX-License-Identifier: Apache-2.0
// The front matter of README.md.
#include "fuzz.hpp"

#include "quantize/metadata/model_card.hpp"

#include <boost/json.hpp>

using namespace modeld::fuzz;
using namespace modeld::quantize;

int modeld::fuzz::fuzz_model_card(const std::uint8_t* data, std::size_t size) {
  const auto card = parse_front_matter(text_of(data, size));
  if (card) (void)boost::json::serialize(*card);
  return 0;
}
