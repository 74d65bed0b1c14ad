// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "store/store.hpp"

namespace modeld::test {

/// Small and quick: no reserve file, no floor of free space.
inline store::StoreOptions small_options(store::DiskWatcher* watcher = nullptr) {
  store::StoreOptions options;
  options.min_free = 0;
  options.reserve_file = 0;
  options.watcher = watcher;
  return options;
}

} // namespace modeld::test
