// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/architecture/architecture.hpp"
#include "quantize/convert/source_tensor.hpp"
#include "schema/file_set.hpp"

#include <vector>

// The closed set of tensor operations and generators that family files may name.

namespace modeld::quantize {

/// Runs a chain over a tensor. Arguments see the configuration, `bid`, `xid`, `shape` and `rank` of
/// the tensor at that step.
Result<SourcePtr> run_ops(SourcePtr tensor, const std::vector<OpRule>& ops, const ExprScope& scope);

/// A tensor that the checkpoint does not hold: made, or out of a file beside it.
Result<SourcePtr> generate(const OpRule& by, const ExprScope& scope, const FileSet& files);

} // namespace modeld::quantize
