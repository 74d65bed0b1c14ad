// SPDX-License-Identifier: Apache-2.0
#include "store/collect.hpp"

#include "store/collect_facts.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <unordered_map>
#include <unordered_set>
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
template <class Value>
using ByDigest = std::unordered_map<Sha256Digest, Value, DigestHash>;

/// A blob may have ten thousand owners; a few of them say enough.
constexpr std::size_t k_named_owners = 3;

/// A snapshot or a variant, and the blobs that it names.
struct Owner {
  CollectItem item;
  std::vector<Sha256Digest> blobs;
  UnixTime used = 0;
  bool rebuildable = false;
};

class Planner {
public:
  Planner(const CollectFacts& facts, const CollectOptions& options)
      : facts_(facts), options_(options) {}

  CollectPlan plan() {
    gather_owners();
    count_owners();
    drop_unused();
    drop_for_targets();
    for (Owner& owner : owners_) {
      plan_.items.push_back(owner.item);
    }
    decide_blobs();
    decide_files();
    plan_.unseen = facts_.unseen;
    return std::move(plan_);
  }

private:
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
                  distinct(blobs),
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
                  {variant.result},
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
    for (const Sha256Digest& blob : owner.blobs) {
      const auto* user = facts_.user_of(blob);
      if (user == nullptr || may_go_open(user->reason)) continue;
      return keep(owner, user->reason, user->who);
    }
  }

  bool may_go_open(Reason reason) const {
    return reason == Reason::open && options_.ignore_open_files;
  }

  void count_owners() {
    owners_of_.reserve(facts_.blobs.size());
    size_of_.reserve(facts_.blobs.size());
    for (const Owner& owner : owners_) {
      for (const Sha256Digest& blob : owner.blobs) {
        ++owners_of_[blob];
      }
    }
    for (const BlobRow& blob : facts_.blobs) {
      size_of_[blob.info.sha256] = blob.damaged ? 0 : blob.info.size;
      total_ += blob.damaged ? 0 : blob.info.size;
    }
  }

  static std::vector<Sha256Digest> distinct(std::vector<Sha256Digest> blobs) {
    std::sort(blobs.begin(), blobs.end());
    blobs.erase(std::unique(blobs.begin(), blobs.end()), blobs.end());
    return blobs;
  }

  void drop(Owner& owner, Reason reason, std::string detail) {
    owner.item.reason = reason;
    owner.item.detail = std::move(detail);
    for (const Sha256Digest& blob : owner.blobs) {
      if (--owners_of_[blob] > 0) continue;
      owner.item.bytes += size_of_[blob];
      dropped_.insert(blob);
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
    const auto names = owner_names();
    for (const BlobRow& blob : facts_.blobs) {
      const Sha256Digest& digest = blob.info.sha256;
      CollectItem item{
          Kind::blob,      digest.hex(), digest, {}, {}, blob.damaged ? 0 : blob.info.size,
          Reason::unnamed, {},           false};
      const auto* user = facts_.user_of(digest);
      const auto owner = names.find(digest);
      if (owner != names.end()) {
        item.reason = Reason::listed;
        item.detail = owner->second;
      } else if (user != nullptr && !may_go_open(user->reason)) {
        item.reason = user->reason;
        item.detail = user->who;
      } else if (!dropped_.contains(digest) && is_young(blob)) {
        item.reason = Reason::young;
      }
      if (item.goes()) item.open = user != nullptr && user->reason == Reason::open;
      add(std::move(item));
    }
  }

  bool is_young(const BlobRow& blob) const {
    return blob.mtime_ns / 1'000'000'000 > facts_.now - options_.grace;
  }

  /// For each blob that stays by name: who names it, and who else.
  ByDigest<std::string> owner_names() const {
    struct Named {
      std::string text;
      std::size_t count = 0;
    };
    ByDigest<Named> found;
    found.reserve(facts_.blobs.size());
    for (const Owner& owner : owners_) {
      if (owner.item.goes()) continue;
      for (const Sha256Digest& blob : owner.blobs) {
        Named& named = found[blob];
        if (++named.count > k_named_owners) continue;
        if (!named.text.empty()) named.text += ", ";
        named.text += owner.item.name;
      }
    }
    ByDigest<std::string> names;
    names.reserve(found.size());
    for (auto& [blob, named] : found) {
      if (named.count > k_named_owners) {
        named.text += " and " + std::to_string(named.count - k_named_owners) + " more";
      }
      names.emplace(blob, std::move(named.text));
    }
    return names;
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
  ByDigest<int> owners_of_;
  ByDigest<std::uint64_t> size_of_;
  std::unordered_set<Sha256Digest, DigestHash> dropped_;
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
