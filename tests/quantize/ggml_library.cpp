// SPDX-License-Identifier: Apache-2.0
#include "quantize/ggml_library.hpp"

#include <dlfcn.h>

#include <cctype>
#include <cstdlib>

namespace modeld::test {
namespace {

/// dequantize_row_q4_K: small letters but for the K of the K types.
std::string dequantizer_name(TensorType type) {
  if (type == TensorType::f16) return "ggml_fp16_to_fp32_row";
  if (type == TensorType::bf16) return "ggml_bf16_to_fp32_row";
  std::string name(info(type).name);
  for (char& c : name) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  if (name.ends_with("_k")) name.back() = 'K';
  return "dequantize_row_" + name;
}

template <class Function>
Function symbol(void* handle, const std::string& name) {
  return reinterpret_cast<Function>(dlsym(handle, name.c_str()));
}

} // namespace

const GgmlLibrary* GgmlLibrary::find() {
  static const std::unique_ptr<const GgmlLibrary> library = []() -> std::unique_ptr<GgmlLibrary> {
    const char* given = std::getenv("MODELD_GGML_LIBRARY");
    void* handle = dlopen(given != nullptr ? given : MODELD_GGML_LIBRARY_PATH, RTLD_NOW);
    if (handle == nullptr) return nullptr;
    return std::unique_ptr<GgmlLibrary>(new GgmlLibrary(handle));
  }();
  return library.get();
}

GgmlLibrary::GgmlLibrary(void* handle)
    : handle_(handle),
      quantize_chunk_(symbol<decltype(quantize_chunk_)>(handle, "ggml_quantize_chunk")) {}

void GgmlLibrary::quantize(TensorType type, const float* in, std::uint64_t rows,
                           std::uint64_t row_elements, const float* importance, void* out) const {
  quantize_chunk_(static_cast<int>(type), in, out, 0, static_cast<std::int64_t>(rows),
                  static_cast<std::int64_t>(row_elements), importance);
}

bool GgmlLibrary::dequantize(TensorType type, const void* in, float* out,
                             std::uint64_t elements) const {
  using Function = void (*)(const void*, float*, std::int64_t);
  const auto function = symbol<Function>(handle_, dequantizer_name(type));
  if (function == nullptr) return false;
  function(in, out, static_cast<std::int64_t>(elements));
  return true;
}

} // namespace modeld::test
