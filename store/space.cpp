// SPDX-License-Identifier: Apache-2.0
#include "store/space.hpp"

#include <algorithm>
#include <utility>

namespace modeld::store {

SpaceReservation::SpaceReservation(std::shared_ptr<SpaceLedger> ledger, std::uint64_t bytes)
    : ledger_(std::move(ledger)), left_(bytes) {}

SpaceReservation::~SpaceReservation() {
  ledger_->reserved -= left_.load();
}

void SpaceReservation::use(std::uint64_t bytes) {
  std::uint64_t left = left_.load();
  std::uint64_t taken = 0;
  do {
    taken = std::min(left, bytes);
  } while (!left_.compare_exchange_weak(left, left - taken));
  ledger_->reserved -= taken;
}

} // namespace modeld::store
