// SPDX-License-Identifier: Apache-2.0
#include "tests/quantize/golden_snapshot.hpp"

#include "quantize/reference/half.hpp"
#include "validate/sha256.hpp"

#include <boost/json.hpp>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace json = boost::json;
namespace fs = std::filesystem;

namespace modeld::test {
namespace {

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t state = 0xCBF29CE484222325;
  for (const char c : text) {
    state = (state ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  }
  return state;
}

std::uint64_t splitmix(std::uint64_t s) {
  s = (s ^ (s >> 30)) * 0xBF58476D1CE4E5B9;
  s = (s ^ (s >> 27)) * 0x94D049BB133111EB;
  return s ^ (s >> 31);
}

double value(std::uint64_t z, bool wide, bool positive) {
  std::int64_t sum = -131070;
  for (const unsigned shift : {0U, 16U, 32U, 48U}) {
    sum += static_cast<std::int64_t>((z >> shift) & 0xFFFF);
  }
  double v = static_cast<double>(sum) * 0x1p-20;
  if (z % 1024 == 0) v *= 8;
  if (wide) v = 1 + 4 * v;
  return positive ? std::abs(v) : v;
}

template <class T>
void put(std::byte*& to, T number) {
  std::memcpy(to, &number, sizeof number);
  to += sizeof number;
}

void fill(std::string_view name, const json::object& tensor, std::byte* to) {
  const std::string dtype(tensor.at("dtype").as_string());
  const json::array& shape = tensor.at("shape").as_array();
  std::uint64_t count = 1;
  for (const json::value& n : shape) {
    count *= n.to_number<std::uint64_t>();
  }
  const std::uint64_t state = fnv1a(name);
  const bool positive = name.find("scale") != std::string_view::npos;
  for (std::uint64_t i = 1; i <= count; ++i) {
    const double v = value(splitmix(state + i * 0x9E3779B97F4A7C15), shape.size() <= 1, positive);
    if (dtype == "F64") put(to, v);
    if (dtype == "F32") put(to, static_cast<float>(v));
    if (dtype == "F16") put(to, quantize::reference::f32_to_f16(static_cast<float>(v)));
    if (dtype == "BF16") put(to, quantize::reference::f32_to_bf16(static_cast<float>(v)));
  }
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

void inflate_into(std::string_view packed, std::byte* to, std::size_t size) {
  uLongf got = size;
  const int status = uncompress(reinterpret_cast<Bytef*>(to), &got,
                                reinterpret_cast<const Bytef*>(packed.data()), packed.size());
  if (status != Z_OK || got != size) throw std::runtime_error("kept tensor data is damaged");
}

std::string weight_file(const json::object& file) {
  const std::string head(file.at("header").as_string());
  std::string data(file.at("bytes").to_number<std::size_t>(), '\0');
  const std::uint64_t length = head.size();
  std::memcpy(data.data(), &length, sizeof length);
  std::memcpy(data.data() + 8, head.data(), head.size());
  auto* body = reinterpret_cast<std::byte*>(data.data()) + 8 + head.size();
  const json::object& kept = file.at("kept_zlib_base64").as_object();
  const json::value header = json::parse(head);
  for (const auto& member : header.as_object()) {
    if (member.key() == "__metadata__") continue;
    const json::object& tensor = member.value().as_object();
    const json::array& range = tensor.at("data_offsets").as_array();
    const auto begin = range[0].to_number<std::size_t>();
    const auto end = range[1].to_number<std::size_t>();
    if (const json::value* packed = kept.if_contains(member.key())) {
      inflate_into(decode_base64(packed->as_string()), body + begin, end - begin);
    } else if (end > begin) {
      fill(member.key(), tensor, body + begin);
    }
  }
  const auto bytes = std::as_bytes(std::span(data));
  if (validate::sha256_of(bytes).hex() != std::string(file.at("sha256").as_string())) {
    throw std::runtime_error("weights of a golden case do not come out right");
  }
  return data;
}

} // namespace

std::string stream_file(const std::string& header) {
  const json::value parsed = json::parse(header);
  std::size_t end = 0;
  for (const auto& member : parsed.as_object()) {
    const json::array& range = member.value().as_object().at("data_offsets").as_array();
    end = std::max(end, range[1].to_number<std::size_t>());
  }
  std::string data(8 + header.size() + end, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(data.data(), &length, sizeof length);
  std::memcpy(data.data() + 8, header.data(), header.size());
  auto* body = reinterpret_cast<std::byte*>(data.data()) + 8 + header.size();
  for (const auto& member : parsed.as_object()) {
    const json::object& tensor = member.value().as_object();
    fill(member.key(), tensor,
         body + tensor.at("data_offsets").as_array()[0].to_number<std::size_t>());
  }
  return data;
}

MemoryFiles golden_snapshot(const fs::path& case_folder, const std::string& model_dir) {
  MemoryFiles files = MemoryFiles::from_folder(case_folder / "snapshot" / model_dir);
  const fs::path weights = case_folder / "weights.json";
  if (!fs::exists(weights)) return files;
  const json::value all = json::parse(read_file(weights));
  for (const json::value& file : all.as_array()) {
    files.put(std::string(file.as_object().at("file").as_string()), weight_file(file.as_object()));
  }
  return files;
}

} // namespace modeld::test
