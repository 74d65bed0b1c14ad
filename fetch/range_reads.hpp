// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fetch/download_context.hpp"
#include "fetch/hub_client.hpp"

#include <span>
#include <vector>

namespace modeld::fetch {

/// Fetches pieces of files, several at once, into their `bytes`. `sites` has the addresses of each
/// piece's file. net_permanent where a server does not answer ranges: the whole file would come.
Result<void> read_ranges(DownloadContext& context, std::span<FilePiece> pieces,
                         const std::vector<std::vector<Url>>& sites);

} // namespace modeld::fetch
