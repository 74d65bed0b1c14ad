// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/convert/weights.hpp"
#include "quantize/gguf/gguf_model.hpp"

#include <boost/json/object.hpp>

#include <string>
#include <vector>

// Where a checkpoint contradicts itself. What the reference decides without a word we decide alike,
// and say so; what gives a file that no runtime can load is refused.

namespace modeld::quantize {

/// Sentences about settings of rotary positions that config.json (as it is) gives in both its older
/// and its newer form with different values. rope_parameters is the one that counts.
std::vector<std::string> rotary_contradictions(const boost::json::object& raw);

/// A sentence where config.json says that input and output embedding are one tensor, or the family
/// has it so, and the checkpoint holds two that differ; else empty. Reads both up to the first
/// difference. `weights` have their own names still.
Result<std::string> tied_contradiction(const Weights& weights, bool tied);

/// malformed, naming what is missing, where a model lacks its embedding or all of a block's
/// tensors, or where the embedding's width is not the one that the metadata states.
Result<void> check_complete(const GgufModel& model, std::string_view arch);

} // namespace modeld::quantize
