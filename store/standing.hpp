// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "store/show.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::store {

/// The wish to see everything in one place, now and whatever comes: standing/<id>.json. Who keeps
/// it in step is the daemon; the links that it makes for it are marked (LinkRecord::standing).
struct StandingLink {
  std::string id;
  ShowTarget target = ShowTarget::huggingface;
  std::string root; ///< absolute
  std::optional<LinkForm> form;
  bool allow_copy = false;
  bool allow_symlink = true;
  std::uint32_t uid = 0; ///< whose: only what this user may read is shown
  UnixTime created = 0;

  bool operator==(const StandingLink&) const = default;

  std::string to_json() const;
  static Result<StandingLink> from_json(std::string_view text);
};

/// By id. Records that cannot be read are left out.
Result<std::vector<StandingLink>> list_standing(Store& store);
/// One for each target and folder: a second one replaces the first. Fills in id and time.
Result<StandingLink> put_standing(Store& store, StandingLink link);
/// not_found where there is none. What it made stays until it is hidden.
Result<void> delete_standing(Store& store, std::string_view id);

} // namespace modeld::store
