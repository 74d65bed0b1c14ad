// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/convert/source_tensor.hpp"
#include "quantize/gguf/gguf_model.hpp"

namespace modeld::quantize {

/// Finite values beyond F16's range (failure case A16).
enum class Overflow { refuse, infinity };

/// A GGUF tensor out of a source tensor: its rows in `type`, converted as the reference does. The
/// dimensions are the source's in reverse. A packed source keeps its own type.
///
/// Reading fails with unsupported where a finite value becomes infinite in F16 and `overflow` says
/// refuse; the message holds the value.
Result<GgufTensor> encode_tensor(std::string name, SourcePtr source, TensorType type,
                                 Overflow overflow);

} // namespace modeld::quantize
