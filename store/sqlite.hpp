// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/digest.hpp"
#include "schema/result.hpp"
#include "store/disk.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace modeld::store {

class Db;

/// For an index that cannot be used.
inline constexpr const char* k_rebuild_hint =
    "modelctl fsck --rebuild makes a new index out of the manifests; where the daemon does not "
    "start, modeld --rebuild-index does";

/// The only door for SQLite's codes: FULL is no_space, BUSY and LOCKED busy, CORRUPT and NOTADB
/// corrupt, CONSTRAINT conflict, READONLY and PERM denied.
Error from_sqlite(sqlite3* db, int code, std::string_view doing);

/// A prepared statement, owned by its Db's cache.
class Stmt {
public:
  Stmt(sqlite3* db, sqlite3_stmt* handle) : db_(db), handle_(handle) {}
  ~Stmt();
  Stmt(const Stmt&) = delete;
  Stmt& operator=(const Stmt&) = delete;

  sqlite3_stmt* handle() const { return handle_; }
  sqlite3* db() const { return db_; }
  /// Whether it changes the database.
  bool writes() const;

private:
  sqlite3* db_;
  sqlite3_stmt* handle_;
};

/// One run of a statement: bound, stepped, read; reset by the destructor. At most one Query of a
/// statement at a time.
class Query {
public:
  Query(Stmt* statement, DiskWatcher* watcher);
  explicit Query(Error error) : error_(std::move(error)) {}
  Query(Query&& other) noexcept;
  Query& operator=(Query&&) = delete;
  ~Query();

  template <class... Values>
  Query& bind(const Values&... values) {
    (bind_one(values), ...);
    return *this;
  }
  /// True on a row, false at the end.
  Result<bool> step();
  /// For statements without rows.
  Result<void> run();

  bool is_null(int column) const;
  std::int64_t integer(int column) const;
  std::uint64_t size(int column) const { return static_cast<std::uint64_t>(integer(column)); }
  std::string text(int column) const { return std::string(text_view(column)); }
  std::string_view text_view(int column) const; ///< good until the next step
  /// A digest column; the schema checks its length.
  template <class Digest>
  Digest digest(int column) const {
    Digest value;
    read_blob(column, value.bytes);
    return value;
  }
  template <class Digest>
  std::optional<Digest> optional_digest(int column) const {
    if (is_null(column)) return std::nullopt;
    return digest<Digest>(column);
  }

private:
  void bind_one(std::int64_t value);
  void bind_one(std::uint64_t value) { bind_one(static_cast<std::int64_t>(value)); }
  void bind_one(std::uint32_t value) { bind_one(static_cast<std::int64_t>(value)); }
  void bind_one(std::int32_t value) { bind_one(static_cast<std::int64_t>(value)); }
  void bind_one(bool value) { bind_one(std::int64_t{value ? 1 : 0}); }
  void bind_one(std::string_view value);
  void bind_one(const std::string& value) { bind_one(std::string_view(value)); }
  void bind_one(const char* value) { bind_one(std::string_view(value)); }
  void bind_one(std::nullptr_t);
  void bind_one(std::span<const std::byte> value);
  template <class Tag, std::size_t Bytes>
  void bind_one(const BasicDigest<Tag, Bytes>& value) {
    bind_one(std::span<const std::byte>(value.bytes));
  }
  template <class Value>
  void bind_one(const std::optional<Value>& value) {
    if (value) {
      bind_one(*value);
    } else {
      bind_one(nullptr);
    }
  }
  void bound(int code);
  void read_blob(int column, std::span<std::byte> into) const;

  sqlite3_stmt* handle() const;
  int watch_before() const;

  Stmt* statement_ = nullptr;
  DiskWatcher* watcher_ = nullptr;
  int next_ = 1;
  std::optional<Error> error_; ///< of preparing or binding; step() returns it
};

/// One connection to the index. One thread at a time.
class Db {
public:
  enum class Access { read_write, read_only };
  /// WAL, synchronous=FULL, foreign keys on, busy timeout 5 s.
  static Result<Db> open(const std::filesystem::path& file, Access access,
                         DiskWatcher* watcher = nullptr);
  Db(Db&&) noexcept;
  Db& operator=(Db&&) noexcept;
  ~Db();

  /// `sql` must be a literal: prepared once and kept by its address.
  Query query(const char* sql);
  /// A statement of its own, for text that is no literal. Ends before the Db does.
  Result<std::unique_ptr<Stmt>> prepare(const std::string& sql);
  /// Any number of statements, without rows.
  Result<void> execute(const std::string& sql);
  std::int64_t changes() const;

private:
  Db(sqlite3* handle, DiskWatcher* watcher) : handle_(handle), watcher_(watcher) {}

  sqlite3* handle_ = nullptr;
  DiskWatcher* watcher_ = nullptr;
  std::map<const char*, std::unique_ptr<Stmt>> statements_;
};

/// Rolls back unless commit() succeeded.
class Txn {
public:
  static Result<Txn> begin(Db& db);
  Txn(Txn&& other) noexcept : db_(std::exchange(other.db_, nullptr)) {}
  Txn& operator=(Txn&&) = delete;
  ~Txn();
  Result<void> commit();

private:
  explicit Txn(Db* db) : db_(db) {}
  Db* db_;
};

} // namespace modeld::store
