// SPDX-License-Identifier: Apache-2.0
#include "tests/quantize/golden_weights.hpp"

#include "quantize/reference/half.hpp"
#include "tests/support/named_stream.hpp"
#include "validate/sha256.hpp"

#include <boost/json.hpp>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string_view>

namespace json = boost::json;

namespace modeld::test {
namespace {

double value(std::uint64_t z, bool wide, bool positive) {
  double v = NamedStream::spread(z);
  if (z % 1024 == 0) v *= 8;
  if (wide) v = 1 + 4 * v;
  return positive ? std::abs(v) : v;
}

template <class T>
void put(std::byte*& to, T number) {
  std::memcpy(to, &number, sizeof number);
  to += sizeof number;
}

std::string stream(const GoldenTensor& tensor) {
  std::uint64_t count = 1;
  for (const std::uint64_t n : tensor.shape) {
    count *= n;
  }
  const std::string& dtype = tensor.dtype;
  const std::size_t width = dtype == "F64" ? 8 : dtype == "F32" ? 4 : 2;
  std::string data(count * width, '\0');
  auto* to = reinterpret_cast<std::byte*>(data.data());
  const NamedStream numbers(tensor.name);
  const bool positive = tensor.name.find("scale") != std::string::npos;
  for (std::uint64_t i = 1; i <= count; ++i) {
    const std::uint64_t z = numbers.bits(i);
    const double v = value(z, tensor.shape.size() <= 1, positive);
    if (dtype == "F64") put(to, v);
    if (dtype == "F32") put(to, static_cast<float>(v));
    if (dtype == "F16") put(to, quantize::reference::f32_to_f16(static_cast<float>(v)));
    if (dtype == "BF16") put(to, quantize::reference::f32_to_bf16(static_cast<float>(v)));
  }
  return data;
}

std::string decode_base64(std::string_view text) {
  std::string out;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    std::uint32_t six = 0;
    if (c >= 'A' && c <= 'Z')
      six = static_cast<std::uint32_t>(c - 'A');
    else if (c >= 'a' && c <= 'z')
      six = static_cast<std::uint32_t>(c - 'a') + 26;
    else if (c >= '0' && c <= '9')
      six = static_cast<std::uint32_t>(c - '0') + 52;
    else if (c == '+')
      six = 62;
    else if (c == '/')
      six = 63;
    else
      continue;
    bits = bits << 6 | six;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>(bits >> count & 0xFF);
  }
  return out;
}

std::string inflated(std::string_view packed, std::size_t size) {
  std::string out(size, '\0');
  uLongf got = size;
  const int status = uncompress(reinterpret_cast<Bytef*>(out.data()), &got,
                                reinterpret_cast<const Bytef*>(packed.data()), packed.size());
  if (status != Z_OK || got != size) throw std::runtime_error("kept tensor data is damaged");
  return out;
}

bool is_stream(const std::string& dtype) {
  return dtype == "F64" || dtype == "F32" || dtype == "F16" || dtype == "BF16";
}

std::string with_header(const std::string& header, const std::vector<GoldenTensor>& tensors) {
  std::string data(8, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(data.data(), &length, sizeof length);
  data += header;
  for (const GoldenTensor& tensor : tensors) {
    data += tensor.kept ? *tensor.kept : stream(tensor);
  }
  return data;
}

} // namespace

std::vector<GoldenTensor> tensors_of(const json::object& file) {
  const json::object& kept = file.at("kept_zlib_base64").as_object();
  const json::value header = json::parse(file.at("header").as_string());
  std::vector<std::pair<std::size_t, GoldenTensor>> out;
  for (const auto& member : header.as_object()) {
    if (member.key() == "__metadata__") continue;
    const json::object& entry = member.value().as_object();
    GoldenTensor tensor{
        std::string(member.key()), std::string(entry.at("dtype").as_string()), {}, {}};
    for (const json::value& n : entry.at("shape").as_array()) {
      tensor.shape.push_back(n.to_number<std::uint64_t>());
    }
    const json::array& range = entry.at("data_offsets").as_array();
    const auto begin = range[0].to_number<std::size_t>();
    const auto size = range[1].to_number<std::size_t>() - begin;
    if (const json::value* packed = kept.if_contains(member.key())) {
      tensor.kept = inflated(decode_base64(packed->as_string()), size);
    } else if (!is_stream(tensor.dtype)) {
      tensor.kept = std::string(size, '\0');
    }
    out.emplace_back(begin, std::move(tensor));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<GoldenTensor> tensors;
  for (auto& [begin, tensor] : out) {
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

std::string golden_weight_file(const json::object& file) {
  std::string data = with_header(std::string(file.at("header").as_string()), tensors_of(file));
  data.resize(file.at("bytes").to_number<std::size_t>(), '\0');
  const auto bytes = std::as_bytes(std::span(data));
  if (validate::sha256_of(bytes).hex() != std::string(file.at("sha256").as_string())) {
    throw std::runtime_error("weights of a golden case do not come out right");
  }
  return data;
}

std::string golden_stream_file(const std::string& header) {
  return with_header(header,
                     tensors_of({{"header", header}, {"kept_zlib_base64", json::object()}}));
}

std::string safetensors_file(const std::vector<GoldenTensor>& tensors) {
  json::object header{{"__metadata__", json::object{{"format", "pt"}}}};
  std::size_t at = 0;
  for (const GoldenTensor& tensor : tensors) {
    const std::size_t size = tensor.kept ? tensor.kept->size() : stream(tensor).size();
    header[tensor.name] = {{"dtype", tensor.dtype},
                           {"shape", json::value_from(tensor.shape)},
                           {"data_offsets", json::array{at, at + size}}};
    at += size;
  }
  return with_header(json::serialize(header), tensors);
}

} // namespace modeld::test
