// SPDX-License-Identifier: Apache-2.0
#include "store/collect.hpp"

#include "store/collect_facts.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <unordered_map>
#include <utility>

// The decision. What is known is in collect_facts, the removal in collect_run.

namespace modeld::store {
namespace {

using Kind = CollectItem::Kind;

struct ReasonRow {
  Reason reason;
  std::string_view slug;
  bool keeps;
};

constexpr std::array k_reasons{
    ReasonRow{Reason::pinned, "pinned", true},  ReasonRow{Reason::leased, "leased", true},
    ReasonRow{Reason::job, "job", true},        ReasonRow{Reason::held, "held", true},
    ReasonRow{Reason::open, "open", true},      ReasonRow{Reason::linked, "linked", true},
    ReasonRow{Reason::young, "young", true},    ReasonRow{Reason::listed, "listed", true},
    ReasonRow{Reason::wanted, "wanted", true},  ReasonRow{Reason::unnamed, "unnamed", false},
    ReasonRow{Reason::unused, "unused", false}, ReasonRow{Reason::target, "target", false},
    ReasonRow{Reason::stale, "stale", false},   ReasonRow{Reason::stray, "stray", false},
};

/// Digests are spread evenly already.
struct DigestHash {
  std::size_t operator()(const Sha256Digest& digest) const {
    std::size_t value = 0;
    std::memcpy(&value, digest.bytes.data(), sizeof value);
    return value;
  }
};

/// A blob may have ten thousand owners; a few of them say enough.
constexpr std::size_t k_named_owners = 3;

/// A snapshot or a variant, and the blobs that it names, by their place in CollectFacts::blobs.
struct Owner {
  CollectItem item;
  std::vector<std::size_t> blobs;
  UnixTime used = 0;
  bool rebuildable = false;
};

class Planner {
public:
  Planner(const CollectFacts& facts, const CollectOptions& options)
      : facts_(facts), options_(options), blobs_(facts.blobs.size()) {}

  CollectPlan plan() {
    gather_blobs();
    gather_owners();
    count_owners();
    drop_unused();
    drop_for_targets();
    plan_.items.reserve(owners_.size() + blobs_.size() + facts_.partials.size() +
                        facts_.strays.size());
    name_owners();
    for (Owner& owner : owners_) {
      plan_.items.push_back(std::move(owner.item));
    }
    decide_blobs();
    decide_files();
    plan_.unseen = facts_.unseen;
    return std::move(plan_);
  }

private:
  /// What the decision needs to know of a blob.
  struct Blob {
    const CollectFacts::User* user = nullptr;
    std::size_t owners = 0; ///< that stay, as far as is decided
    std::size_t named = 0;  ///< of these, how many `owner_names` has
    std::string owner_names;
    bool dropped = false;
  };

  void gather_blobs() {
    places_.reserve(facts_.blobs.size());
    for (std::size_t i = 0; i < facts_.blobs.size(); ++i) {
      places_.emplace(facts_.blobs[i].info.sha256, i);
      total_ += size_of(i);
    }
    for (const auto& [digest, user] : facts_.users) {
      const auto at = places_.find(digest);
      if (at != places_.end()) blobs_[at->second].user = &user;
    }
  }

  std::uint64_t size_of(std::size_t blob) const {
    const BlobRow& row = facts_.blobs[blob];
    return row.damaged ? 0 : row.info.size;
  }

  void gather_owners() {
    owners_.reserve(facts_.snapshots.size() + facts_.variants.size());
    for (const auto& [info, blobs] : facts_.snapshots) {
      Owner owner{{Kind::snapshot,
                   info.repo.text + '@' + info.commit.hex(),
                   {},
                   info.repo,
                   info.commit,
                   0,
                   Reason::wanted,
                   {},
                   false},
                  places_of(blobs),
                  std::max(info.used, info.added),
                  false};
      if (const auto pin = facts_.pin_of(info.repo, info.commit)) {
        keep(owner, Reason::pinned, *pin);
      } else {
        keep_if_used(owner);
      }
      owners_.push_back(std::move(owner));
    }
    for (const Variant& variant : facts_.variants) {
      Owner owner{{Kind::variant,
                   variant.file_name,
                   variant.key,
                   variant.repo,
                   variant.commit,
                   0,
                   Reason::wanted,
                   {},
                   false},
                  places_of({variant.result}),
                  std::max(facts_.used(variant.result), variant.added),
                  facts_.has_snapshot(variant.repo, variant.commit)};
      if (const auto pin = facts_.pin_of(variant)) {
        keep(owner, Reason::pinned, *pin);
      } else {
        keep_if_used(owner);
      }
      owners_.push_back(std::move(owner));
    }
  }

  static void keep(Owner& owner, Reason reason, std::string detail) {
    owner.item.reason = reason;
    owner.item.detail = std::move(detail);
  }

  /// Something that one of its blobs is used for keeps the whole.
  void keep_if_used(Owner& owner) const {
    for (const std::size_t blob : owner.blobs) {
      const auto* user = blobs_[blob].user;
      if (user == nullptr || may_go_open(user->reason)) continue;
      return keep(owner, user->reason, user->who);
    }
  }

  bool may_go_open(Reason reason) const {
    return reason == Reason::open && options_.ignore_open_files;
  }

  void count_owners() {
    for (const Owner& owner : owners_) {
      for (const std::size_t blob : owner.blobs) {
        ++blobs_[blob].owners;
      }
    }
  }

  /// Each place once.
  std::vector<std::size_t> places_of(const std::vector<Sha256Digest>& digests) const {
    std::vector<std::size_t> places;
    places.reserve(digests.size());
    for (const Sha256Digest& digest : digests) {
      const auto at = places_.find(digest);
      if (at != places_.end()) places.push_back(at->second);
    }
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    return places;
  }

  void drop(Owner& owner, Reason reason, std::string detail) {
    owner.item.reason = reason;
    owner.item.detail = std::move(detail);
    for (const std::size_t blob : owner.blobs) {
      if (--blobs_[blob].owners > 0) continue;
      owner.item.bytes += size_of(blob);
      blobs_[blob].dropped = true;
    }
    total_ -= owner.item.bytes;
    won_by_targets_ += owner.item.bytes;
  }

  void drop_unused() {
    if (!options_.unused_for) return;
    const UnixTime limit = facts_.now - *options_.unused_for;
    for (Owner& owner : owners_) {
      if (owner.item.reason != Reason::wanted || owner.used > limit) continue;
      drop(owner, Reason::unused, "last used " + std::to_string(owner.used));
    }
  }

  bool above_targets() const {
    if (options_.size_target && total_ > *options_.size_target) return true;
    return options_.free_target && facts_.free + won_by_targets_ < *options_.free_target;
  }

  void drop_for_targets() {
    if (!above_targets()) return;
    std::vector<Owner*> order;
    for (Owner& owner : owners_) {
      if (owner.item.reason == Reason::wanted) order.push_back(&owner);
    }
    const bool variants_first = options_.order == CollectOptions::Order::variants_first;
    std::stable_sort(order.begin(), order.end(), [variants_first](const Owner* a, const Owner* b) {
      if (variants_first && a->rebuildable != b->rebuildable) return a->rebuildable;
      return a->used < b->used;
    });
    for (Owner* owner : order) {
      if (!above_targets()) return;
      drop(*owner, Reason::target, "last used " + std::to_string(owner->used));
    }
  }

  void decide_blobs() {
    for (std::size_t i = 0; i < blobs_.size(); ++i) {
      const BlobRow& row = facts_.blobs[i];
      Blob& blob = blobs_[i];
      CollectItem item{Kind::blob,
                       row.info.sha256.hex(),
                       row.info.sha256,
                       {},
                       {},
                       size_of(i),
                       Reason::unnamed,
                       {},
                       false};
      if (blob.owners > 0) {
        item.reason = Reason::listed;
        item.detail = std::move(blob.owner_names);
        if (blob.owners > blob.named) {
          item.detail += " and " + std::to_string(blob.owners - blob.named) + " more";
        }
      } else if (blob.user != nullptr && !may_go_open(blob.user->reason)) {
        item.reason = blob.user->reason;
        item.detail = blob.user->who;
      } else if (!blob.dropped && is_young(row)) {
        item.reason = Reason::young;
      }
      if (item.goes()) item.open = blob.user != nullptr && blob.user->reason == Reason::open;
      add(std::move(item));
    }
  }

  bool is_young(const BlobRow& blob) const {
    return blob.mtime_ns / 1'000'000'000 > facts_.now - options_.grace;
  }

  /// For each blob that stays by name: who names it.
  void name_owners() {
    for (const Owner& owner : owners_) {
      if (owner.item.goes()) continue;
      for (const std::size_t place : owner.blobs) {
        Blob& blob = blobs_[place];
        if (blob.named == k_named_owners) continue;
        if (blob.named++ > 0) blob.owner_names += ", ";
        blob.owner_names += owner.item.name;
      }
    }
  }

  void decide_files() {
    for (const StrayFile& file : facts_.partials) {
      const bool stale = !file.active && file.changed <= facts_.now - options_.partial_age;
      const Reason reason = file.active ? Reason::held : stale ? Reason::stale : Reason::young;
      add({Kind::partial, file.path, {}, {}, {}, file.bytes, reason, {}, false});
    }
    for (const StrayFile& file : facts_.strays) {
      const bool young = file.changed > facts_.now - options_.grace;
      add({Kind::stray,
           file.path,
           {},
           {},
           {},
           file.bytes,
           young ? Reason::young : Reason::stray,
           {},
           false});
    }
  }

  void add(CollectItem item) {
    plan_.total += item.bytes;
    if (item.goes()) plan_.won += item.bytes;
    if (item.goes() && item.open) plan_.not_freed += item.bytes;
    plan_.items.push_back(std::move(item));
  }

  const CollectFacts& facts_;
  const CollectOptions& options_;
  CollectPlan plan_;
  std::vector<Owner> owners_;
  std::vector<Blob> blobs_; ///< beside CollectFacts::blobs
  std::unordered_map<Sha256Digest, std::size_t, DigestHash> places_;
  std::uint64_t total_ = 0;
  std::uint64_t won_by_targets_ = 0;
};

} // namespace

std::string_view slug(Reason reason) {
  return k_reasons[static_cast<std::size_t>(reason)].slug;
}

bool keeps(Reason reason) {
  return k_reasons[static_cast<std::size_t>(reason)].keeps;
}

std::string_view slug(CollectItem::Kind kind) {
  constexpr std::array<std::string_view, 5> k_names{"snapshot", "variant", "blob", "partial",
                                                    "stray"};
  return k_names[static_cast<std::size_t>(kind)];
}

Result<CollectPlan> plan_collection(Store& store, const CollectOptions& options) {
  MODELD_ASSIGN(const auto facts, gather_facts(store));
  return Planner(facts, options).plan();
}

} // namespace modeld::store
