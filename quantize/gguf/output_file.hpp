// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/byte_sink.hpp"
#include "schema/result.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace modeld::quantize {

/// What becomes of a file that has the output's name already.
enum class ExistingFile { replace, refuse };

/// A plain file that appears under its name only when it is complete: bytes go to a file without a
/// name in the same folder, commit() syncs it and gives it its name. Without commit() nothing
/// remains, also after SIGKILL; only where the file system has no such files there is a temporary
/// name, ".<name>.<process>.part". One owner, one thread.
class OutputFile final : public ByteSink {
public:
  /// not_found where the folder is missing; conflict where `path` is one of `inputs`, also through
  /// a link (failure case B06), or is there already and `existing` says refuse; invalid_argument
  /// where it is a folder or a device.
  static Result<std::unique_ptr<OutputFile>> create(const std::filesystem::path& path,
                                                    std::span<const std::filesystem::path> inputs,
                                                    ExistingFile existing = ExistingFile::replace);

  ~OutputFile() override;
  Result<void> write(std::span<const std::byte> bytes) override;
  /// Bytes synced: what may take long, or fail for want of space. Nothing may be written
  /// afterwards.
  Result<void> sync();
  /// sync() where that was not done, name given, folder synced.
  Result<void> commit();

private:
  OutputFile(std::filesystem::path path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::filesystem::path temporary_path() const;
  void start_writeback();
  Result<void> name_it();

  std::filesystem::path path_;
  int fd_;
  std::uint64_t written_ = 0;
  std::uint64_t on_the_way_ = 0;    ///< bytes that the disk was given already
  std::filesystem::path temporary_; ///< empty: it has no name yet, or its own
  ExistingFile existing_ = ExistingFile::replace;
  bool synced_ = false;
};

} // namespace modeld::quantize
