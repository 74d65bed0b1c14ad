// SPDX-License-Identifier: Apache-2.0
// A GGUF file against the checkpoint that it is said to be made of, value by value.
#include "daemon/audit.hpp"

#include "quantize/convert/convert.hpp"
#include "quantize/gguf/gguf_source.hpp"
#include "validate/sha256.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

namespace modeld::daemon {
namespace {

using quantize::GgufTensor;

/// The converter's name for a type that holds plain numbers; empty for any other.
std::string_view outtype_of(TensorType type) {
  switch (type) {
  case TensorType::f32:
    return "f32";
  case TensorType::f16:
    return "f16";
  case TensorType::bf16:
    return "bf16";
  default:
    return {};
  }
}

/// The checkpoint's tensors in the type that the file has them in.
class Plans {
public:
  explicit Plans(const FileSet& files) : files_(files) {}

  /// Null where no conversion has the tensor in this type.
  Result<const GgufTensor*> find(const std::string& name, TensorType type) {
    for (const std::string_view outtype : {std::string_view("auto"), outtype_of(type)}) {
      MODELD_ASSIGN(const auto* tensors, plan(outtype));
      const auto at = tensors->find(name);
      if (at != tensors->end() && at->second->type == type) return at->second;
    }
    return nullptr;
  }

private:
  using ByName = std::map<std::string_view, const GgufTensor*>;
  struct Plan {
    quantize::ConvertResult converted;
    ByName tensors;
  };

  Result<const ByName*> plan(std::string_view outtype) {
    const auto known = plans_.find(outtype);
    if (known != plans_.end()) return &known->second.tensors;
    quantize::ConvertOptions options;
    options.no_vocabulary = true;
    options.outtype = outtype;
    MODELD_ASSIGN(auto converted, quantize::convert(files_, options));
    Plan& made = plans_[std::string(outtype)];
    made.converted = std::move(converted);
    for (const GgufTensor& tensor : made.converted.model.tensors)
      made.tensors.emplace(tensor.name, &tensor);
    return &made.tensors;
  }

  const FileSet& files_;
  std::map<std::string, Plan, std::less<>> plans_;
};

struct Compared {
  std::string sha256;                     ///< of what is stored
  std::optional<std::uint64_t> different; ///< the first element that is another one
};

std::uint64_t first_difference(const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  const auto at = std::mismatch(a.begin(), a.end(), b.begin());
  return static_cast<std::uint64_t>(at.first - a.begin());
}

/// Makes a tensor again and reads it again.
Result<Compared> compare(const GgufTensor& made, const GgufTensor& stored, Progress& progress) {
  constexpr std::uint64_t k_slab = std::uint64_t{4} << 20;
  const std::uint64_t row = made.row_bytes();
  const std::uint64_t rows_at_once =
      std::max<std::uint64_t>(1, k_slab / std::max<std::uint64_t>(1, row));
  const std::uint64_t element = info(made.type).bytes;
  Compared out;
  validate::Sha256 digest;
  std::vector<std::byte> again;
  std::vector<std::byte> there;
  for (std::uint64_t first = 0; first < made.rows(); first += rows_at_once) {
    if (progress.cancel) return fail(Errc::cancelled, "auditing: interrupted");
    const std::uint64_t count = std::min(rows_at_once, made.rows() - first);
    again.resize(static_cast<std::size_t>(count * row));
    there.resize(again.size());
    MODELD_TRY(made.source->read_rows(first, count, again));
    MODELD_TRY(stored.source->read_rows(first, count, there));
    digest.update(there);
    progress.done += there.size();
    if (!out.different && again != there)
      out.different = (first * row + first_difference(again, there)) / element;
  }
  out.sha256 = digest.finish().hex();
  return out;
}

bool same_shape(const GgufTensor& a, const GgufTensor& b) {
  const auto dim = [](const GgufTensor& tensor, std::size_t i) {
    return i < tensor.ne.size() ? tensor.ne[i] : 1;
  };
  for (std::size_t i = 0; i < std::max(a.ne.size(), b.ne.size()); ++i)
    if (dim(a, i) != dim(b, i)) return false;
  return true;
}

} // namespace

Result<Audit::Output> audit_output(const FileSet& files, const AuditedOutput& output,
                                   std::vector<Audit::Made>& made, Progress& progress) {
  MODELD_ASSIGN(const quantize::GgufSource source,
                quantize::open_gguf_source(output.files, output.path));
  Audit::Output out;
  out.files = source.paths;
  out.tensors = source.model.tensors.size();
  std::map<std::string_view, const GgufTensor*> stored;
  for (const GgufTensor& tensor : source.model.tensors) {
    stored.emplace(tensor.name, &tensor);
    if (!outtype_of(tensor.type).empty()) progress.total += tensor.bytes();
  }
  Plans plans(files);
  for (Audit::Made& one : made) {
    const auto at = stored.find(one.name);
    if (at == stored.end()) {
      out.missing.push_back(one.name);
      continue;
    }
    const GgufTensor& there = *at->second;
    stored.erase(at);
    GgufTensor expected;
    expected.ne = one.ne;
    if (!same_shape(expected, there)) {
      out.other_shape.push_back(one.name);
      continue;
    }
    if (outtype_of(there.type).empty()) continue; // quantized: not the checkpoint's values
    MODELD_ASSIGN(const GgufTensor* again, plans.find(one.name, there.type));
    if (again == nullptr) {
      out.other_values.push_back(
          fmt::format("{} (no conversion has it as {})", one.name, info(there.type).name));
      continue;
    }
    MODELD_ASSIGN(const Compared compared, compare(*again, there, progress));
    ++out.compared;
    one.sha256 = compared.sha256;
    if (compared.different)
      out.other_values.push_back(
          fmt::format("{} (first at element {})", one.name, *compared.different));
  }
  for (const GgufTensor& tensor : source.model.tensors)
    if (stored.contains(tensor.name)) out.extra.push_back(tensor.name);
  return out;
}

} // namespace modeld::daemon
