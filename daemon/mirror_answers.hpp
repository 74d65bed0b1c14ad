// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/catalog.hpp"
#include "daemon/http.hpp"
#include "schema/snapshot.hpp"
#include "store/store.hpp"

#include <string>
#include <string_view>

// Answers in the Hub's own form (hub-protocol.md 1.3 to 1.6, 2.2), about one snapshot.

namespace modeld::daemon {

struct HubView {
  store::Store& store;
  const Snapshot& snapshot;
};

/// A status with X-Error-Code and X-Error-Message, which is all that the answer to a HEAD can say.
Response hub_error(int status, std::string_view code, std::string_view message);

Result<Response> hub_info(const HubView& view);
/// One page, files and folders below `folder`; EntryNotFound where there is none.
Result<Response> hub_tree(const HubView& view, std::string_view folder);
Result<Response> hub_paths_info(const HubView& view, const Request& request);
Result<Response> hub_refs(const store::Store& store, const RepoId& repo);
/// The bytes, with ranges and If-None-Match. No redirect.
Result<Response> hub_file(const HubView& view, std::string_view path, const Request& request);
/// As git has it: of a large file the pointer.
Result<Response> hub_raw(const HubView& view, std::string_view path);

} // namespace modeld::daemon
