// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fetch/bandwidth.hpp"
#include "fetch/hub_client.hpp"
#include "fetch/range_tuner.hpp"
#include "fetch/request.hpp"
#include "fetch/sink_writer.hpp"
#include "fetch/transfer.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace modeld::fetch {

/// What all files of one HubClient::download share. Lives as long as the call.
struct DownloadContext {
  Wire& wire;
  const HubOptions& options;
  const std::vector<std::unique_ptr<Bandwidth::Share>>& shares; ///< of the limits in options
  const Courier& courier;
  DownloadHost& host;
  SinkWriter& writer;
  RepoId repo;
  GitOid commit;
  RangeTuner tuner;
  Clock::time_point hold_until{}; ///< rate limit: nobody asks before
  std::uint64_t received = 0;     ///< bytes of content, in all
  std::uint64_t buffered = 0;     ///< bytes that parts ahead of their turn may hold
};

/// Where a file comes from: the mirrors' addresses and the Hub's, in the order in which they are
/// tried, and what was learned on the way. Shared by the ranges of one file.
struct FileSource {
  std::vector<Url> sites;
  std::size_t site = 0; ///< index of the one in use
  Url storage;          ///< that the site redirected to, for ranges that come later
  Validator validator;  ///< of the bytes so far
  bool found = false;   ///< content came: later ranges need not look for it

  const Url& first() const { return sites[site]; }
};

} // namespace modeld::fetch
