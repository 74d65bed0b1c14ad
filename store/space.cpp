// SPDX-License-Identifier: Apache-2.0
#include "store/space.hpp"

#include <algorithm>
#include <utility>

namespace modeld::store {
namespace {

/// Takes so much of what is left, and says how much that was.
std::uint64_t take(std::atomic<std::uint64_t>& from, std::uint64_t bytes) {
  std::uint64_t left = from.load();
  std::uint64_t taken = 0;
  do {
    taken = std::min(left, bytes);
  } while (!from.compare_exchange_weak(left, left - taken));
  return taken;
}

void give_back(SpaceLedger& ledger, std::uint32_t payer, std::uint64_t bytes) {
  auto asked = ledger.asked.lock();
  const auto at = asked->find(payer);
  at->second -= bytes;
  if (at->second == 0) asked->erase(at);
}

} // namespace

std::uint64_t UserQuotas::of(std::uint32_t uid) const {
  const auto at = exceptions.find(uid);
  return at == exceptions.end() ? each : at->second;
}

SpaceReservation::SpaceReservation(std::shared_ptr<SpaceLedger> ledger, std::uint64_t bytes,
                                   std::optional<std::uint32_t> payer)
    : ledger_(std::move(ledger)), payer_(bytes == 0 ? std::nullopt : payer), left_(bytes),
      unstored_(bytes), asked_(bytes) {}

SpaceReservation::~SpaceReservation() {
  forgo(asked_.load());
  ledger_->reserved -= left_.load();
  ledger_->unstored -= unstored_.load();
}

void SpaceReservation::use(std::uint64_t bytes) {
  ledger_->reserved -= take(left_, bytes);
}

void SpaceReservation::need(std::uint64_t bytes) {
  left_ += bytes;
  ledger_->reserved += bytes;
}

void SpaceReservation::store(std::uint64_t bytes) {
  ledger_->unstored -= take(unstored_, bytes);
}

void SpaceReservation::forgo(std::uint64_t bytes) {
  use(bytes);
  store(bytes);
  const std::uint64_t given = take(asked_, bytes);
  if (payer_ && given > 0) give_back(*ledger_, *payer_, given);
}

} // namespace modeld::store
