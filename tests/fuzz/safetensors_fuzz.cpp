// SPDX-License-Identifier: Apache-2.0
#include "fuzz.hpp"

#include "validate/block_data.hpp"
#include "validate/check.hpp"
#include "validate/safetensors.hpp"

#include <algorithm>
#include <string>

using namespace modeld;
using namespace modeld::fuzz;
using namespace modeld::validate;

namespace {

/// Accepted means: ranges inside the file, sizes that fit, nothing twice, nothing left over.
void check_accepted(std::span<const std::byte> file, const SafetensorsHeader& header) {
  std::uint64_t total = 0;
  for (const SafetensorsTensor& tensor : header.tensors) {
    require(tensor.begin <= tensor.end, "begin behind end");
    require(header.data_start + tensor.end <= file.size(), "a range outside of the file");
    require(tensor.elements() * info(tensor.dtype).bits == tensor.bytes() * 8, "shape and range");
    require(header.find(tensor.name) == &tensor, "a tensor that is not found by its name");
    total += tensor.bytes();
  }
  require(header.data_start + total == file.size(), "bytes that belong to nobody");
}

std::string escaped(const std::string& name) {
  std::string out;
  for (const char c : name) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) return {}; // compat takes these; not written again
    out += c;
  }
  return out;
}

/// Written again from what was read, the header means the same.
void check_round_trip(const SafetensorsHeader& header) {
  std::string text = "{";
  for (const SafetensorsTensor& tensor : header.tensors) {
    const std::string name = escaped(tensor.name);
    if (name.empty() != tensor.name.empty()) return;
    if (text.size() > 1) text += ',';
    text +=
        '"' + name + "\":{\"dtype\":\"" + std::string(info(tensor.dtype).name) + "\",\"shape\":[";
    for (std::size_t i = 0; i < tensor.shape.size(); ++i)
      text += (i > 0 ? "," : "") + std::to_string(tensor.shape[i]);
    text += "],\"data_offsets\":[" + std::to_string(tensor.begin) + ',' +
            std::to_string(tensor.end) + "]}";
  }
  text += '}';
  std::string file(8, '\0');
  for (std::size_t i = 0; i < 8; ++i)
    file[i] = static_cast<char>(text.size() >> (8 * i) & 0xFF);
  file += text;
  std::uint64_t end = 0;
  for (const SafetensorsTensor& tensor : header.tensors)
    end = std::max(end, tensor.end);
  const auto again = check_safetensors(std::as_bytes(std::span(file)), file.size() + end, "again",
                                       Profile::compat);
  require(again.accepted(), "not accepted when written again");
  require(again.value->tensors.size() == header.tensors.size(), "another number of tensors");
}

} // namespace

int modeld::fuzz::fuzz_safetensors(const std::uint8_t* data, std::size_t size) {
  const auto file = bytes_of(data, size);
  const auto strict = check_safetensors(file, file.size(), "m.safetensors", Profile::strict);
  const auto compat = check_safetensors(file, file.size(), "m.safetensors", Profile::compat);
  require(!strict.accepted() || compat.accepted(), "strict accepts what compat refuses");
  require(strict.accepted() == !strict.report.first_error().has_value(),
          "an error without a reason");
  if (compat.accepted()) {
    check_accepted(file, *compat.value);
    check_round_trip(*compat.value);
    Report report("m.safetensors");
    scan_safetensors_data(file, *compat.value, report);
    require(report.accepted(), "values of safetensors are warnings only");
  }
  check_safetensors_file(file, "m.safetensors");
  return 0;
}
