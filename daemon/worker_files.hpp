// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/worker_channel.hpp"
#include "schema/file_set.hpp"

#include <map>
#include <mutex>

namespace modeld::daemon {

/// The files of a request, as a worker sees them: each is asked for when it is first needed, comes
/// as a read-only descriptor, and is mapped. Any thread; outlived by the channel.
class WorkerFiles final : public FileSet {
public:
  WorkerFiles(WorkerChannel& channel, std::string name, std::vector<Entry> entries);
  ~WorkerFiles() override;

  std::string_view name() const override { return name_; }
  const std::vector<Entry>& entries() const override { return entries_; }
  Result<std::span<const std::byte>> bytes(std::string_view path) const override;
  void trim() const override;

private:
  Result<std::span<const std::byte>> map(std::size_t index) const;

  WorkerChannel& channel_;
  std::string name_;
  std::vector<Entry> entries_;
  mutable std::mutex mutex_; ///< also: one question at a time on the channel
  mutable std::map<std::size_t, std::span<const std::byte>> mapped_;
};

} // namespace modeld::daemon
