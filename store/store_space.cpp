// SPDX-License-Identifier: Apache-2.0
#include "store/reach.hpp"
#include "store/state.hpp"
#include "store/store.hpp"

#include <fmt/format.h>

#include <sys/statvfs.h>

#include <set>
#include <utility>

// Space and quotas of Store.

namespace modeld::store {
namespace {

tl::unexpected<Error> no_space(const Store& store, std::string_view why, std::uint64_t needed,
                               std::uint64_t free, std::uint64_t reserved) {
  Error error{
      Errc::no_space,
      fmt::format("reserving space in '{}': {} bytes needed, {} {}, of which {} are promised "
                  "to other work",
                  store.root().string(), needed, free, why, reserved),
      "free some with modelctl gc, or remove what is not needed",
      {{"needed", std::to_string(needed)},
       {"free", std::to_string(free)},
       {"reserved", std::to_string(reserved)}},
      0};
  return fail(std::move(error));
}

/// needed 0: it is not known yet.
tl::unexpected<Error> over_quota(const UserUsage& user, std::uint64_t needed) {
  const std::string name = account_of(user.uid).name;
  const std::uint64_t taken = user.used + user.reserved;
  Error error{
      Errc::no_space,
      fmt::format(
          "reserving space for user {}{}: {} of the quota of {} bytes are left, {} are used "
          "and {} promised to running jobs{}",
          user.uid, name.empty() ? "" : fmt::format(" ('{}')", name),
          user.quota > taken ? user.quota - taken : 0, user.quota, user.used, user.reserved,
          needed == 0 ? "" : fmt::format("; {} needed", needed)),
      "modelctl usage shows who uses what; modelctl rm what you do not need, or ask for a larger "
      "quota (store.user_quota, store.user_quotas)",
      {{"user", std::to_string(user.uid)},
       {"quota", std::to_string(user.quota)},
       {"used", std::to_string(user.used)},
       {"reserved", std::to_string(user.reserved)},
       {"needed", std::to_string(needed)}},
      0};
  return fail(std::move(error));
}

Result<UserUsage> usage_of(Store::State& s, std::uint32_t uid) {
  UserUsage user{uid, 0, 0, s.options.user_quotas.of(uid)};
  {
    auto index = s.reader.lock();
    MODELD_ASSIGN(user.used, index->charged_to(uid));
  }
  const auto asked = s.ledger->asked.lock();
  const auto at = asked->find(uid);
  if (at != asked->end()) user.reserved = at->second;
  return user;
}

/// As for the disk: taken first, and given back by the caller on refusal.
Result<void> ask(Store::State& s, std::uint32_t uid, std::uint64_t bytes) {
  std::uint64_t before = 0;
  {
    auto asked = s.ledger->asked.lock();
    std::uint64_t& sum = (*asked)[uid];
    before = std::exchange(sum, sum + bytes);
  }
  MODELD_ASSIGN(UserUsage user, usage_of(s, uid));
  user.reserved = before;
  const std::uint64_t taken = user.used + before;
  if (user.quota == 0 || (taken <= user.quota && bytes <= user.quota - taken)) return {};
  return over_quota(user, bytes);
}

} // namespace

Result<Usage> Store::usage() const {
  struct statvfs info {};
  if (fstatvfs(state_->disk.fd(), &info) != 0) {
    return fail(from_errno(errno, fmt::format("looking at '{}'", root().string())));
  }
  return Usage{info.f_blocks * info.f_frsize, info.f_bavail * info.f_frsize,
               state_->ledger->reserved.load()};
}

Result<std::uint64_t> Store::stored_bytes() const {
  auto index = state_->reader.lock();
  return index->blob_bytes();
}

std::uint64_t Store::quota_of(std::uint32_t uid) const {
  return state_->options.user_quotas.of(uid);
}

Result<void> Store::check_quota(std::uint32_t uid) const {
  if (state_->options.user_quotas.of(uid) == 0) return {};
  MODELD_ASSIGN(const UserUsage user, usage_of(*state_, uid));
  if (user.used + user.reserved < user.quota) return {};
  return over_quota(user, 0);
}

Result<std::vector<UserUsage>> Store::user_usage() const {
  State& s = *state_;
  std::set<std::uint32_t> uids;
  for (const auto& [uid, quota] : s.options.user_quotas.exceptions) {
    uids.insert(uid);
  }
  {
    auto index = s.reader.lock();
    MODELD_ASSIGN(const auto charges, index->list_charges());
    for (const auto& [uid, bytes] : charges) {
      uids.insert(uid);
    }
  }
  {
    const auto asked = s.ledger->asked.lock();
    for (const auto& [uid, bytes] : *asked) {
      uids.insert(uid);
    }
  }
  std::vector<UserUsage> users;
  for (const std::uint32_t uid : uids) {
    MODELD_ASSIGN(const auto user, usage_of(s, uid));
    users.push_back(user);
  }
  return users;
}

Result<std::shared_ptr<SpaceReservation>> Store::reserve_space(std::uint64_t bytes,
                                                               std::optional<std::uint32_t> payer) {
  State& s = *state_;
  MODELD_ASSIGN(const auto found, usage());
  // Taken first and given back on refusal, so that two callers cannot both have the last bytes.
  const std::uint64_t before = s.ledger->reserved.fetch_add(bytes);
  const std::uint64_t coming = s.ledger->unstored.fetch_add(bytes);
  if (payer && bytes > 0) {
    auto asked = ask(s, *payer, bytes);
    if (!asked) {
      // Gives all of it back.
      SpaceReservation(s.ledger, bytes, payer);
      return fail(std::move(asked).error());
    }
  }
  auto reservation = std::make_shared<SpaceReservation>(s.ledger, bytes, payer);
  const std::uint64_t kept = s.options.min_free;
  const std::uint64_t usable = found.free > kept ? found.free - kept : 0;
  if (before > usable || bytes > usable - before) {
    return no_space(*this, fmt::format("free above the {} that are kept free", kept), bytes, usable,
                    before);
  }
  if (s.options.max_bytes == 0) return reservation;
  MODELD_ASSIGN(const std::uint64_t stored, stored_bytes());
  const std::uint64_t quota = s.options.max_bytes;
  const std::uint64_t left = quota > stored ? quota - stored : 0;
  if (coming > left || bytes > left - coming) {
    return no_space(*this, fmt::format("left of the store's {}", quota), bytes, left, coming);
  }
  return reservation;
}

} // namespace modeld::store
