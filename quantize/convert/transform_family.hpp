// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/architecture/expr.hpp"
#include "quantize/convert/source_tensor.hpp"

// Generators and transforms that one family or a few need and that no chain of simpler ones gives.

namespace modeld::quantize {

/// Llama 3's frequency factors: 1 for short wavelengths, the factor for long ones, between them
/// smooth (failure case A08). Reads rope_parameters, head_dim, hidden_size, num_attention_heads.
Result<SourcePtr> llama3_rope(const ExprScope& scope);
/// The same for the first `rotary` dimensions of a head, computed in double precision, with ones
/// for the rest of `head` (Step 3.5, which also has a base of its own).
Result<SourcePtr> llama3_rope_part(const ExprScope& scope, std::int64_t rotary, std::int64_t head,
                                   double base);

} // namespace modeld::quantize
