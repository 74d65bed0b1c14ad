// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/architecture/architecture.hpp"
#include "quantize/convert/output_type.hpp"
#include "quantize/convert/tensor_origin.hpp"
#include "quantize/convert/transform_encode.hpp"
#include "quantize/gguf/gguf_model.hpp"
#include "quantize/metadata/metadata.hpp"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace modeld::quantize {

/// What a plan cannot do with a checkpoint.
struct PlanFault {
  enum class Kind {
    unknown, ///< no rule takes the tensor
    misfit,  ///< its shape is not one that the rule can work with
    missing, ///< a part of what belongs together is not there
    unable,  ///< a rule does not work for another reason, which is ours
  };
  Kind kind = Kind::unknown;
  std::string tensor; ///< of the checkpoint, as rules see its name
  std::string message;
};

struct PlanOptions {
  Overflow overflow = Overflow::refuse;
  bool fp8_as_q8 = false;    ///< what was FP8 becomes Q8_0
  bool fuse_gate_up = false; ///< stacked gate and up experts in one tensor
  bool adapter = false;      ///< the tensors are changes that an adapter makes
  /// Collects what would else be an error, and plans the rest. Reads no tensor data then.
  std::vector<PlanFault>* faults = nullptr;
};

struct TensorPlan {
  std::vector<GgufTensor> tensors;
  std::vector<TensorOrigin> origins; ///< of each
  ParameterCount parameters;
  /// The checkpoint's own tensors that rules take and make nothing of.
  std::vector<std::string> left_out;
};

/// Output tensors one after the other, in the order in which they are added; the types are chosen
/// here. Must not outlive what it is made of.
class TensorPlanner {
public:
  TensorPlanner(const Architecture& family, const OutputType& file_type, const PlanOptions& options)
      : family_(family), file_type_(file_type), options_(options) {}

  /// `wanted`: as choose_type() has it. conflict: the name is there already; unsupported: what an
  /// adapter cannot change.
  Result<void> add(std::string name, SourcePtr tensor, const std::string& wanted);
  /// What was added under a name; null where nothing was.
  SourcePtr find(const std::string& name) const;
  /// Whether what is added from here on was FP8 in the checkpoint.
  void set_was_fp8(bool was_fp8) { was_fp8_ = was_fp8; }

  /// Where what is added from here on comes from.
  void set_origin(TensorOrigin origin) { origin_ = std::move(origin); }

  /// Everything, with the parameters counted.
  TensorPlan finish() &&;

private:
  Result<void> add_plain(std::string name, SourcePtr tensor, const std::string& wanted);
  Result<void> add_change(std::string name, const SourcePtr& tensor);
  Result<bool> fused(const std::string& name, const SourcePtr& tensor, const std::string& wanted);

  const Architecture& family_;
  const OutputType& file_type_;
  const PlanOptions& options_;
  TensorPlan plan_;
  std::set<std::string> names_;
  std::map<std::string, SourcePtr> sources_;                       ///< by output name
  std::map<std::string, std::pair<SourcePtr, SourcePtr>> gate_up_; ///< by block
  std::map<std::string, std::vector<std::string>> waiting_; ///< sources of the one that came first
  TensorOrigin origin_;
  bool was_fp8_ = false;
};

} // namespace modeld::quantize
