// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "validate/json_reader.hpp"
#include "validate/safetensors.hpp"

#include <cstdint>
#include <span>
#include <string_view>

namespace modeld::validate {

/// One reading of one header: framing, then the JSON, then the ranges. Private to this folder.
class SafetensorsReader {
public:
  SafetensorsReader(std::span<const std::byte> head, std::uint64_t file_size, std::string_view path,
                    Profile profile, const Limits& limits);
  Checked<SafetensorsHeader> run() &&;

private:
  /// What one entry says, before it is judged.
  struct Entry {
    SafetensorsTensor tensor;
    bool dtype = false;
    bool shape = false;
    bool offsets = false;
    bool whole = true; ///< all three members could be read
  };

  bool frame();
  bool begin_json();
  bool read_root();
  bool end_json();
  void read_name();
  bool read_metadata();
  bool read_entry();
  bool read_entry_members(Entry& entry);
  bool read_dtype(Entry& entry);
  bool read_shape(Entry& entry);
  bool read_offsets(Entry& entry);
  /// Passes over the value that the current token begins; looks for duplicates inside.
  bool skip_value();
  std::uint64_t read_integer(std::string_view what, bool& ok);
  /// Fails with ST-07 or ST-08 for the reader's fault; false, to be returned.
  bool json_fault();

  void check_size(Entry& entry);
  void check_format();
  void check_tiling();
  void check_data_end(std::uint64_t end);
  void check_alignment();
  void note_rare_types();

  std::uint64_t here() const { return 8 + json_.offset(); }
  bool add_key(std::string_view name, NameIndex& keys, std::vector<std::string>& names);

  std::span<const std::byte> head_;
  std::uint64_t file_size_;
  const Limits& limits_;
  std::string_view text_;
  JsonReader json_{""};
  SafetensorsHeader header_;
  Report report_;
  bool ranges_known_ = true;
};

} // namespace modeld::validate
