// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"
#include "validate/finding.hpp"
#include "validate/gguf.hpp"

#include <boost/json/object.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace modeld::daemon {

/// What a model file says about itself. Views into the file's bytes.
struct Inspection {
  struct Item {
    std::string key;
    std::variant<validate::GgufValueView, std::string> value;

    std::string type() const; ///< "u32", "arr[str,128256]"
  };
  struct Tensor {
    std::string name;
    std::string type;
    std::vector<std::uint64_t> shape; ///< in the order of the file's format
    std::uint64_t offset = 0;         ///< from the start of the file
    std::uint64_t bytes = 0;
    std::uint64_t elements = 0;
  };
  struct OfType {
    std::uint64_t tensors = 0;
    std::uint64_t elements = 0;
    std::uint64_t bytes = 0;
  };

  std::string path;
  std::string format;                                    ///< "gguf", "safetensors"
  std::vector<std::pair<std::string, std::string>> head; ///< version, byte order, alignment, ...
  std::uint64_t file_bytes = 0;
  std::uint64_t data_start = 0;
  std::vector<Item> metadata;
  std::vector<Tensor> tensors;

  std::map<std::string, OfType> types() const;
  const Item* find(std::string_view key) const;
};

/// Reads a GGUF or safetensors file by its content; errors that leave it readable are in `report`.
Result<Inspection> inspect(std::span<const std::byte> file, std::string path,
                           validate::Report& report);

/// For people: arrays and long texts are shortened unless `full`.
std::string inspection_text(const Inspection& inspection, bool full);
/// One value alone, whole; lines of an array one below the other.
std::string inspection_value(const Inspection::Item& item);
/// Complete.
boost::json::object inspection_json(const Inspection& inspection);
boost::json::value inspection_json(const Inspection::Item& item);

} // namespace modeld::daemon
