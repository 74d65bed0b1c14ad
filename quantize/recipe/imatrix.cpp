// SPDX-License-Identifier: Apache-2.0
#include "quantize/recipe/imatrix.hpp"

#include "quantize/gguf/gguf_source.hpp"
#include "quantize/recipe/tensor_role.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace modeld::quantize {
namespace {

tl::unexpected<Error> broken(std::string_view path, std::string cause) {
  return fail(Errc::malformed, fmt::format("reading importance matrix '{}': {}", path, cause));
}

/// The old form, read front to back.
class LegacyReader {
public:
  LegacyReader(std::span<const std::byte> file, std::string_view path) : left_(file), path_(path) {}

  Result<ImatrixFile> read() {
    ImatrixFile file;
    file.legacy = true;
    MODELD_ASSIGN(const std::int32_t count, number("the number of entries"));
    if (count < 1) {
      return broken(path_,
                    fmt::format("neither GGUF nor the old form: it would have {} entries", count));
    }
    for (std::int32_t i = 0; i < count; ++i) {
      MODELD_TRY(entry(file));
    }
    MODELD_TRY(trailer(file));
    return file;
  }

private:
  Result<std::int32_t> number(std::string_view what) {
    std::int32_t value = 0;
    if (left_.size() < sizeof value) return broken(path_, fmt::format("ends before {}", what));
    std::memcpy(&value, left_.data(), sizeof value);
    left_ = left_.subspan(sizeof value);
    return value;
  }

  Result<std::string> text(std::string_view what) {
    MODELD_ASSIGN(const std::int32_t length, number(what));
    if (length < 0 || static_cast<std::size_t>(length) > left_.size()) {
      return broken(path_,
                    fmt::format("{} would have {} bytes; {} are left", what, length, left_.size()));
    }
    std::string value(static_cast<std::size_t>(length), '\0');
    std::memcpy(value.data(), left_.data(), value.size());
    left_ = left_.subspan(value.size());
    value.resize(std::strlen(value.c_str()));
    return value;
  }

  Result<void> entry(ImatrixFile& file) {
    MODELD_ASSIGN(std::string name, text("the name of an entry"));
    MODELD_ASSIGN(const std::int32_t calls, number("the calls of '" + name + "'"));
    MODELD_ASSIGN(const std::int32_t values, number("the size of '" + name + "'"));
    if (values < 1 || static_cast<std::size_t>(values) > left_.size() / sizeof(float)) {
      return broken(path_, fmt::format("entry '{}' would have {} values; {} bytes are left", name,
                                       values, left_.size()));
    }
    ImatrixFile::Entry made;
    made.sums.resize(static_cast<std::size_t>(values));
    made.counts = {calls};
    std::memcpy(made.sums.data(), left_.data(), made.sums.size() * sizeof(float));
    left_ = left_.subspan(made.sums.size() * sizeof(float));
    file.entries[std::move(name)] = std::move(made);
    return {};
  }

  /// Written by newer programs only.
  Result<void> trailer(ImatrixFile& file) {
    if (left_.empty()) return {};
    MODELD_ASSIGN(file.chunks, number("the number of calls"));
    if (left_.empty()) return {};
    MODELD_ASSIGN(std::string dataset, text("the name of the data set"));
    if (!dataset.empty()) file.datasets.push_back(std::move(dataset));
    return {};
  }

  std::span<const std::byte> left_;
  std::string_view path_;
};

Result<std::vector<float>> floats_of(const GgufTensor& tensor, std::string_view path) {
  if (tensor.type != TensorType::f32) {
    return broken(path, fmt::format("tensor '{}' is {}; F32 is allowed", tensor.name,
                                    info(tensor.type).name));
  }
  std::vector<float> values(tensor.row_elements() * tensor.rows());
  if (values.empty()) return broken(path, fmt::format("tensor '{}' is empty", tensor.name));
  MODELD_TRY(tensor.source->read_rows(0, tensor.rows(), std::as_writable_bytes(std::span(values))));
  return values;
}

Result<void> read_tensor(const GgufTensor& tensor, std::string_view path, ImatrixFile& file) {
  constexpr std::string_view k_sums = ".in_sum2";
  constexpr std::string_view k_counts = ".counts";
  const std::string_view name = tensor.name;
  if (name.ends_with(k_sums)) {
    auto& entry = file.entries[std::string(name.substr(0, name.size() - k_sums.size()))];
    MODELD_ASSIGN(entry.sums, floats_of(tensor, path));
  } else if (name.ends_with(k_counts)) {
    auto& entry = file.entries[std::string(name.substr(0, name.size() - k_counts.size()))];
    MODELD_ASSIGN(const std::vector<float> counts, floats_of(tensor, path));
    for (const float count : counts) {
      if (!(count >= 0 && count < 9.0e18F)) {
        return broken(path, fmt::format("tensor '{}' has the count {}", tensor.name, count));
      }
      entry.counts.push_back(std::lround(count));
    }
  }
  return {};
}

int count_of(const GgufModel& model, std::string_view key) {
  const GgufValue* value = model.find(key);
  const auto* number = value != nullptr ? std::get_if<std::uint32_t>(value) : nullptr;
  return number != nullptr ? static_cast<int>(*number) : 0;
}

Result<ImatrixFile> read_gguf_form(std::span<const std::byte> bytes, std::string_view path) {
  MODELD_ASSIGN(const GgufModel model, read_gguf_model(bytes, path));
  ImatrixFile file;
  for (const std::string_view key :
       {"imatrix.datasets", "imatrix.chunk_count", "imatrix.chunk_size"}) {
    if (model.find(key) == nullptr) {
      return broken(path, fmt::format("no '{}' in the metadata: this is a GGUF file, but no "
                                      "importance matrix",
                                      key));
    }
  }
  const auto* datasets = std::get_if<GgufArray>(model.find("imatrix.datasets"));
  if (datasets != nullptr) {
    if (const auto* names = std::get_if<std::vector<std::string>>(datasets)) {
      file.datasets = *names;
    }
  }
  file.chunks = count_of(model, "imatrix.chunk_count");
  file.chunk_size = count_of(model, "imatrix.chunk_size");
  for (const GgufTensor& tensor : model.tensors) {
    MODELD_TRY(read_tensor(tensor, path, file));
  }
  if (file.entries.empty()) return broken(path, "no entries in it");
  for (const auto& [name, entry] : file.entries) {
    if (entry.sums.empty() || entry.counts.empty() ||
        entry.sums.size() % entry.counts.size() != 0) {
      return broken(path, fmt::format("entry '{}' has {} sums and {} counts", name,
                                      entry.sums.size(), entry.counts.size()));
    }
  }
  return file;
}

bool any_in(const std::vector<std::string>& parts, const std::string& name) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const std::string& part) { return name.find(part) != std::string::npos; });
}

/// Mean squares of one entry, in single precision as the reference computes them.
std::vector<float> means(const ImatrixFile::Entry& entry, bool legacy, std::size_t& unused) {
  std::vector<float> result(entry.sums.size());
  if (legacy) {
    const std::int64_t calls = entry.counts.front();
    for (std::size_t i = 0; i < result.size(); ++i) {
      result[i] = calls > 0 ? entry.sums[i] / static_cast<float>(calls) : entry.sums[i];
    }
    return result;
  }
  const std::size_t columns = entry.sums.size() / entry.counts.size();
  for (std::size_t expert = 0; expert < entry.counts.size(); ++expert) {
    const auto count = static_cast<float>(entry.counts[expert]);
    unused += count > 0 ? 0 : 1;
    for (std::size_t i = expert * columns; i < (expert + 1) * columns; ++i) {
      result[i] = count > 0 ? entry.sums[i] / count : 1.0F;
    }
  }
  return result;
}

ImatrixStatistics statistics_of(const std::string& name, const ImatrixFile::Entry& entry,
                                bool legacy) {
  ImatrixStatistics s;
  s.name = name;
  const std::vector<float> values = means(entry, legacy, s.unused_experts);
  s.experts = legacy ? 1 : entry.counts.size();
  s.columns = values.size() / s.experts;
  s.tokens = *std::max_element(entry.counts.begin(), entry.counts.end());
  s.min = values.front();
  s.max = values.front();
  double squares = 0;
  std::size_t active = 0;
  for (const float v : values) {
    s.sum += v;
    squares += static_cast<double>(v) * v;
    s.min = std::min<double>(s.min, v);
    s.max = std::max<double>(s.max, v);
    active += v > 1e-5F ? 1 : 0;
  }
  const auto count = static_cast<double>(values.size());
  s.mean = s.sum / count;
  s.deviation = std::sqrt(std::max(0.0, squares / count - s.mean * s.mean));
  s.active = static_cast<double>(active) / count;
  for (const float v : values) {
    const double share = s.sum > 0 ? v / s.sum : 0;
    if (share > 0) s.entropy -= share * std::log2(share);
  }
  return s;
}

} // namespace

Result<ImatrixFile> read_imatrix(std::span<const std::byte> file, std::string_view path) {
  constexpr std::string_view k_magic = "GGUF";
  if (file.size() >= k_magic.size() &&
      std::memcmp(file.data(), k_magic.data(), k_magic.size()) == 0) {
    return read_gguf_form(file, path);
  }
  return LegacyReader(file, path).read();
}

Result<Importance> make_importance(const ImatrixFile& file, std::string text,
                                   const ImatrixFilter& filter) {
  Importance made;
  made.file = std::move(text);
  made.datasets = file.datasets;
  made.chunks = file.chunks;
  std::vector<std::string> unused;
  for (const auto& [name, entry] : file.entries) {
    if (any_in(filter.exclude, name)) continue;
    if (!filter.include.empty() && !any_in(filter.include, name)) continue;
    std::size_t without = 0;
    std::vector<float> values = means(entry, file.legacy, without);
    if (without > 0) {
      unused.push_back(fmt::format("{} of {} experts of '{}'", without, entry.counts.size(), name));
    }
    const auto bad = std::find_if(values.begin(), values.end(),
                                  [](float v) { return !std::isfinite(v) || v < 0; });
    if (bad != values.end()) {
      return broken(made.file, fmt::format("entry '{}' has the value {} at {}; allowed are finite "
                                           "numbers from 0",
                                           name, *bad, bad - values.begin()));
    }
    made.entries.emplace(name, std::move(values));
  }
  if (!unused.empty()) {
    made.warnings.push_back(fmt::format("no token reached {}; they are quantized without guidance",
                                        fmt::join(unused, ", ")));
  }
  if (made.entries.empty()) {
    made.warnings.emplace_back("the include and exclude options leave no entry of the importance "
                               "matrix; quantizing without");
  }
  return made;
}

std::vector<ImatrixStatistics> imatrix_statistics(const ImatrixFile& file) {
  std::vector<ImatrixStatistics> all;
  for (const auto& [name, entry] : file.entries) {
    all.push_back(statistics_of(name, entry, file.legacy));
  }
  std::sort(all.begin(), all.end(), [](const ImatrixStatistics& a, const ImatrixStatistics& b) {
    return quantizer_order(a.name, b.name);
  });
  return all;
}

} // namespace modeld::quantize
