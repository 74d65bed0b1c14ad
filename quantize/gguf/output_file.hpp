// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/byte_sink.hpp"
#include "schema/result.hpp"

#include <filesystem>
#include <memory>
#include <span>

namespace modeld::quantize {

/// A plain file that appears under its name only when it is complete: bytes go to a temporary file
/// in the same folder, commit() syncs and renames it. Without commit() nothing remains. One owner,
/// one thread.
class OutputFile final : public ByteSink {
public:
  /// not_found where the folder is missing; conflict where `path` is one of `inputs`, also through
  /// a link (failure case B06).
  static Result<std::unique_ptr<OutputFile>> create(const std::filesystem::path& path,
                                                    std::span<const std::filesystem::path> inputs);

  ~OutputFile() override;
  Result<void> write(std::span<const std::byte> bytes) override;
  /// Bytes synced, name given, folder synced. Nothing may be written afterwards.
  Result<void> commit();

private:
  OutputFile(std::filesystem::path path, std::filesystem::path temporary, int fd);

  std::filesystem::path path_;
  std::filesystem::path temporary_; ///< empty once it has its name
  int fd_;
};

} // namespace modeld::quantize
