// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/gguf/gguf_model.hpp"

#include <boost/json/object.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace modeld::test {

enum class Keys { all, without_tokenizer };

/// What is different between a model, its file, and the description of an output in a golden
/// case: the first metadata key, tensor or data. Empty where all that is described is equal.
std::string first_difference(const quantize::GgufModel& model, const std::vector<std::byte>& file,
                             const boost::json::object& output, Keys keys);

} // namespace modeld::test
