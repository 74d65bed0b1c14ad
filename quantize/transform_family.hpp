// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/architecture_expr.hpp"
#include "quantize/source_tensor.hpp"

// Generators and transforms that one family or a few need and that no chain of simpler ones gives.

namespace modeld::quantize {

/// Llama 3's frequency factors: 1 for short wavelengths, the factor for long ones, between them
/// smooth (failure case A08). Reads rope_parameters, head_dim, hidden_size, num_attention_heads.
Result<SourcePtr> llama3_rope(const ExprScope& scope);

} // namespace modeld::quantize
