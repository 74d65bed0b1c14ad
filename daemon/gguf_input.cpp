// SPDX-License-Identifier: Apache-2.0
#include "daemon/gguf_input.hpp"

#include "store/folder_files.hpp"
#include "validate/shard_name.hpp"

#include <fmt/format.h>

#include <system_error>

namespace modeld::daemon {
namespace {

namespace fs = std::filesystem;

Result<store::FilePlace> place_of(const fs::path& path) {
  std::error_code ec;
  const fs::path where = fs::absolute(path, ec);
  const auto size = fs::file_size(path, ec);
  if (ec) {
    return fail(from_errno(ec.value(), fmt::format("opening '{}'", path.string())));
  }
  return store::FilePlace{path.filename().string(), where, size};
}

} // namespace

Result<std::unique_ptr<FileSet>> open_one_file(const fs::path& path) {
  MODELD_ASSIGN(auto place, place_of(path));
  return store::make_file_set(path.filename().string(), {std::move(place)});
}

Result<GgufInput> open_gguf_input(const fs::path& path) {
  MODELD_ASSIGN(auto first, place_of(path));
  const std::string file = first.path;
  std::vector<store::FilePlace> places{std::move(first)};
  // Parts that are not there are reported where the metadata asks for them.
  const auto name = validate::numbered_name(file, ".gguf");
  if (name && name->number == 1) {
    for (std::size_t i = 1; i < name->total; ++i) {
      const fs::path part = path.parent_path() / quantize::part_path(name->prefix, i, name->total);
      std::error_code ec;
      if (!fs::is_regular_file(part, ec)) continue;
      MODELD_ASSIGN(auto place, place_of(part));
      places.push_back(std::move(place));
    }
  }
  GgufInput input;
  input.files = store::make_file_set(file, std::move(places));
  MODELD_ASSIGN(input.source, quantize::open_gguf_source(*input.files, file));
  for (const std::string& part : input.source.paths) {
    input.paths.push_back(path.parent_path() / part);
  }
  return input;
}

} // namespace modeld::daemon
