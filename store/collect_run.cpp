// SPDX-License-Identifier: Apache-2.0
#include "store/collect.hpp"
#include "store/layout.hpp"
#include "store/shelf.hpp"
#include "store/show.hpp"
#include "store/state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

namespace modeld::store {
namespace {

using Kind = CollectItem::Kind;

/// Blobs deleted in one transaction, under one exclusive moment: ingests wait that long.
constexpr std::size_t k_batch = 64;
/// Below this the index may lack the room to note that something goes.
constexpr std::uint64_t k_low_space = 16U << 20;

class Remover {
public:
  Remover(Store& store, CollectPlan& plan, Progress* progress)
      : store_(store), state_(store.internals()), plan_(plan), progress_(progress) {}

  Result<void> run() {
    MODELD_TRY(make_room());
    MODELD_ASSIGN(links_, list_links(store_));
    if (progress_ != nullptr) progress_->total = plan_.won;
    for (CollectItem& item : plan_.items) {
      MODELD_TRY(check_cancel());
      if (!item.goes()) continue;
      MODELD_TRY(remove_owner_or_file(item));
    }
    std::vector<CollectItem*> batch;
    for (CollectItem& item : plan_.items) {
      if (item.goes() && item.kind == Kind::blob) batch.push_back(&item);
      if (batch.size() == k_batch) MODELD_TRY(remove_blobs(batch));
    }
    MODELD_TRY(remove_blobs(batch));
    recount();
    return {};
  }

private:
  Result<void> check_cancel() const {
    if (progress_ == nullptr || !progress_->cancel) return {};
    return fail(Errc::cancelled, "collecting: cancelled");
  }

  Result<void> make_room() {
    MODELD_ASSIGN(const auto usage, store_.usage());
    if (usage.free >= k_low_space) return {};
    return state_.disk.unlink(layout::k_reserve);
  }

  /// Links that the daemon made by itself go with what they show.
  Result<void> hide_standing(const CollectItem& item) {
    for (const LinkRecord& link : links_) {
      if (!link.standing || link.repo != item.repo || link.commit != item.commit) continue;
      auto hidden = hide(store_, link.id);
      if (!hidden && hidden.error().code != Errc::not_found) {
        return fail(std::move(hidden).error());
      }
    }
    return {};
  }

  Result<void> remove_owner_or_file(CollectItem& item) {
    if (item.kind == Kind::snapshot || item.kind == Kind::variant) MODELD_TRY(hide_standing(item));
    switch (item.kind) {
    case Kind::snapshot:
      return settle(item, store_.remove_snapshot(item.repo, item.commit));
    case Kind::variant:
      return settle(item, store_.remove_variant(*item.digest));
    case Kind::partial:
      return remove_partial(item);
    case Kind::stray:
      return remove_stray(item);
    default:
      return {};
    }
  }

  /// Gone already is fine; pinned meanwhile stays.
  static Result<void> settle(CollectItem& item, Result<void> done) {
    if (done || done.error().code == Errc::not_found) return {};
    if (done.error().code != Errc::conflict) return done;
    item.reason = Reason::pinned;
    item.detail = done.error().message;
    return {};
  }

  Result<void> remove_partial(CollectItem& item) {
    auto active = state_.active_partials.lock();
    const bool taken = std::any_of(active->begin(), active->end(), [&item](const auto& key) {
      return layout::partial(key) == item.name;
    });
    if (taken) {
      item.reason = Reason::held;
      return {};
    }
    MODELD_TRY(state_.disk.unlink(layout::note_of(item.name)));
    MODELD_ASSIGN(const auto offsets, shelved_offsets(state_.disk, item.name));
    for (const std::uint64_t offset : offsets) {
      MODELD_TRY(state_.disk.unlink(layout::shelved(item.name, offset)));
    }
    return state_.disk.unlink(item.name);
  }

  Result<void> remove_stray(CollectItem& item) {
    const std::unique_lock placing(state_.placing);
    const auto digest = Sha256Digest::parse(item.name.substr(item.name.rfind('/') + 1));
    if (digest && item.name == layout::blob(*digest)) {
      auto index = state_.writer.lock();
      MODELD_ASSIGN(const auto row, index->find_blob(*digest));
      if (row) {
        item.reason = Reason::listed; // an ingest found it and made it a blob
        return {};
      }
    }
    if (state_.disk.size_of(item.name)) return state_.disk.unlink(item.name);
    return state_.disk.remove_tree(item.name);
  }

  bool has_connection_lease(const Sha256Digest& digest) {
    auto leases = state_.connection_leases.lock();
    return std::any_of(leases->begin(), leases->end(),
                       [&digest](const Lease& lease) { return lease.blob == digest; });
  }

  /// Blobs that nobody uses at this moment; from now on nobody can begin to.
  void condemn(std::vector<CollectItem*>& batch) {
    std::erase_if(batch, [this](CollectItem* item) {
      if (!state_.holds->condemn(*item->digest)) {
        item->reason = Reason::held;
        return true;
      }
      if (!has_connection_lease(*item->digest)) return false;
      state_.holds->pardon(*item->digest);
      item->reason = Reason::leased;
      return true;
    });
  }

  Result<void> delete_rows(std::vector<CollectItem*>& batch) {
    auto index = state_.writer.lock();
    MODELD_ASSIGN(auto txn, index->begin());
    for (CollectItem* item : batch) {
      MODELD_ASSIGN(const bool named, index->is_named(*item->digest));
      if (named) {
        item->reason = Reason::listed; // came to use after the plan
      } else {
        MODELD_TRY(index->delete_blob(*item->digest));
      }
    }
    return txn.commit();
  }

  /// Into tmp/ by a rename, which is quick, while ingests wait; the unlink of a large file is not.
  Result<std::vector<std::string>> move_files(const std::vector<CollectItem*>& batch) {
    std::vector<std::string> moved;
    for (const CollectItem* item : batch) {
      const std::string path = layout::blob(*item->digest);
      if (item->goes()) MODELD_TRY(state_.disk.unlink(layout::pieces(*item->digest)));
      if (!item->goes() || !state_.disk.exists(path)) continue;
      moved.push_back(state_.temporary("gone"));
      MODELD_TRY(state_.disk.rename(path, moved.back()));
    }
    return moved;
  }

  Result<std::vector<std::string>> take_out(std::vector<CollectItem*>& batch) {
    const std::unique_lock placing(state_.placing);
    MODELD_TRY(delete_rows(batch));
    return move_files(batch);
  }

  Result<void> remove_blobs(std::vector<CollectItem*>& batch) {
    MODELD_TRY(check_cancel());
    condemn(batch);
    if (batch.empty()) return {};
    auto moved = take_out(batch);
    for (const CollectItem* item : batch) {
      state_.holds->pardon(*item->digest);
      if (progress_ != nullptr && item->goes()) progress_->done += item->bytes;
    }
    batch.clear();
    MODELD_TRY(moved);
    for (const std::string& path : *moved) {
      MODELD_TRY(state_.disk.unlink(path));
    }
    return {};
  }

  void recount() {
    plan_.won = 0;
    plan_.not_freed = 0;
    for (const CollectItem& item : plan_.items) {
      const bool owner = item.kind == Kind::snapshot || item.kind == Kind::variant;
      if (owner || !item.goes()) continue;
      plan_.won += item.bytes;
      if (item.open) plan_.not_freed += item.bytes;
    }
  }

  Store& store_;
  Store::State& state_;
  CollectPlan& plan_;
  Progress* progress_;
  std::vector<LinkRecord> links_;
};

} // namespace

Result<CollectPlan> collect(Store& store, const CollectOptions& options, Progress* progress) {
  MODELD_ASSIGN(auto plan, plan_collection(store, options));
  MODELD_TRY(Remover(store, plan, progress).run());
  store.refill_reserve();
  return plan;
}

} // namespace modeld::store
