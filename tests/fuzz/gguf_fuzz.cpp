// SPDX-License-Identifier: Apache-2.0
#include "fuzz.hpp"

#include "validate/block_data.hpp"
#include "validate/check.hpp"
#include "validate/gguf.hpp"
#include "validate/gguf_model.hpp"

using namespace modeld;
using namespace modeld::fuzz;
using namespace modeld::validate;

namespace {

bool inside(std::string_view part, std::span<const std::byte> file) {
  const auto* begin = reinterpret_cast<const char*>(file.data());
  return part.empty() || (part.data() >= begin && part.data() + part.size() <= begin + file.size());
}

void check_accepted(std::span<const std::byte> file, const GgufHeader& header) {
  std::uint64_t end = 0;
  for (const GgufTensorInfo& tensor : header.tensors) {
    require(tensor.offset >= end, "tensors overlap");
    require(tensor.offset % header.alignment == 0, "a tensor that is not aligned");
    require(tensor.bytes <= file.size() &&
                header.data_start + tensor.offset + tensor.bytes <= file.size(),
            "a tensor outside of the file");
    require(header.find_tensor(tensor.name) == &tensor, "a tensor that is not found by its name");
    end = tensor.offset + tensor.bytes;
  }
  for (const GgufKvView& item : header.kv) {
    require(header.find(item.key) == &item.value, "a key that is not found");
    require(inside(item.key, file), "a key outside of the file");
    std::uint64_t count = 0;
    for (const std::string_view text : item.value.strings()) {
      require(inside(text, file), "a string outside of the file");
      ++count;
    }
    if (item.value.is_array() && item.value.element == GgufType::string)
      require(count == item.value.count, "another number of strings");
    if (item.value.is_array() && item.value.element != GgufType::string && item.value.count > 0)
      require(item.value.at(item.value.count - 1).bytes.size() == scalar_bytes(item.value.element),
              "a last element of another size");
  }
}

} // namespace

int modeld::fuzz::fuzz_gguf(const std::uint8_t* data, std::size_t size) {
  const auto file = bytes_of(data, size);
  const auto strict = check_gguf(file, file.size(), "m.gguf", Profile::strict);
  const auto compat = check_gguf(file, file.size(), "m.gguf", Profile::compat);
  require(!strict.accepted() || compat.accepted(), "strict accepts what compat refuses");
  require(strict.accepted() == !strict.report.first_error().has_value(),
          "an error without a reason");
  if (compat.accepted()) {
    check_accepted(file, *compat.value);
    Report report("m.gguf");
    check_gguf_model(GgufModelView(*compat.value), report);
    scan_gguf_data(file, *compat.value, report);
  }
  check_gguf_file(file, "m.gguf");
  return 0;
}
