// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace modeld::store {
namespace {

constexpr int k_busy_timeout_ms = 5000;

Errc code_of(int primary) {
  switch (primary) {
  case SQLITE_FULL:
    return Errc::no_space;
  case SQLITE_BUSY:
  case SQLITE_LOCKED:
    return Errc::busy;
  case SQLITE_CORRUPT:
  case SQLITE_NOTADB:
    return Errc::corrupt;
  case SQLITE_CONSTRAINT:
    return Errc::conflict;
  case SQLITE_READONLY:
  case SQLITE_PERM:
  case SQLITE_CANTOPEN:
    return Errc::denied;
  case SQLITE_NOMEM:
  case SQLITE_IOERR:
    return Errc::io;
  default:
    return Errc::internal;
  }
}

} // namespace

Error from_sqlite(sqlite3* db, int code, std::string_view doing) {
  const char* text = db != nullptr ? sqlite3_errmsg(db) : sqlite3_errstr(code);
  Error error{code_of(code & 0xFF), fmt::format("{}: {}", doing, text), {}, {}, 0};
  if (db != nullptr) error.sys = sqlite3_system_errno(db);
  if (error.code == Errc::corrupt) error.hint = k_rebuild_hint;
  return error;
}

Stmt::~Stmt() {
  sqlite3_finalize(handle_);
}

bool Stmt::writes() const {
  return sqlite3_stmt_readonly(handle_) == 0;
}

Query::Query(Stmt* statement, DiskWatcher* watcher)
    : statement_(statement), watcher_(statement->writes() ? watcher : nullptr) {}

Query::Query(Query&& other) noexcept
    : statement_(std::exchange(other.statement_, nullptr)), watcher_(other.watcher_),
      next_(other.next_), error_(std::move(other.error_)) {}

Query::~Query() {
  if (statement_ == nullptr) return;
  sqlite3_reset(statement_->handle());
  sqlite3_clear_bindings(statement_->handle());
}

sqlite3_stmt* Query::handle() const {
  return statement_->handle();
}

void Query::bound(int code) {
  if (code != SQLITE_OK && !error_) {
    error_ = from_sqlite(statement_->db(), code, "binding a value of the index");
  }
}

void Query::bind_one(std::int64_t value) {
  if (statement_ != nullptr) bound(sqlite3_bind_int64(handle(), next_++, value));
}

void Query::bind_one(std::string_view value) {
  if (statement_ == nullptr) return;
  const char* text = value.data() == nullptr ? "" : value.data();
  bound(sqlite3_bind_text64(handle(), next_++, text, value.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
}

void Query::bind_one(std::nullptr_t) {
  if (statement_ != nullptr) bound(sqlite3_bind_null(handle(), next_++));
}

void Query::bind_one(std::span<const std::byte> value) {
  if (statement_ == nullptr) return;
  bound(sqlite3_bind_blob64(handle(), next_++, value.data(), value.size(), SQLITE_TRANSIENT));
}

int Query::watch_before() const {
  if (watcher_ == nullptr) return 0;
  DiskEvent event{DiskOp::sql, sqlite3_sql(handle()), {}, 0, 0};
  return watcher_->before(event);
}

Result<bool> Query::step() {
  if (error_) return fail(*error_);
  if (const int error = watch_before(); error != 0) {
    return fail(from_errno(error, "writing to the index"));
  }
  const int code = sqlite3_step(handle());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) {
    if (watcher_ != nullptr) watcher_->after({DiskOp::sql, sqlite3_sql(handle()), {}, 0, 0});
    return false;
  }
  return fail(from_sqlite(statement_->db(), code, "using the index"));
}

Result<void> Query::run() {
  MODELD_TRY(step());
  return {};
}

bool Query::is_null(int column) const {
  return sqlite3_column_type(handle(), column) == SQLITE_NULL;
}

std::int64_t Query::integer(int column) const {
  return sqlite3_column_int64(handle(), column);
}

std::string_view Query::text_view(int column) const {
  const void* data = sqlite3_column_blob(handle(), column);
  const int size = sqlite3_column_bytes(handle(), column);
  if (data == nullptr || size <= 0) return {};
  return {static_cast<const char*>(data), static_cast<std::size_t>(size)};
}

void Query::read_blob(int column, std::span<std::byte> into) const {
  const void* data = sqlite3_column_blob(handle(), column);
  const auto size = static_cast<std::size_t>(std::max(sqlite3_column_bytes(handle(), column), 0));
  if (data != nullptr) std::memcpy(into.data(), data, std::min(size, into.size()));
}

Result<Db> Db::open(const std::filesystem::path& file, Access access, DiskWatcher* watcher) {
  const int flags = (access == Access::read_only ? SQLITE_OPEN_READONLY
                                                 : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) |
                    SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(file.c_str(), &handle, flags, nullptr);
  Db db(handle, watcher);
  const std::string doing = fmt::format("opening the index '{}'", file.string());
  if (code != SQLITE_OK) {
    return fail(from_sqlite(handle, code, doing).with_hint(k_rebuild_hint));
  }
  if (access == Access::read_write && sqlite3_db_readonly(handle, "main") == 1) {
    return fail(Errc::denied, fmt::format("{}: it may not be written to", doing), k_rebuild_hint);
  }
  sqlite3_busy_timeout(handle, k_busy_timeout_ms);
  const char* settings = access == Access::read_only
                             ? "PRAGMA query_only=ON"
                             : "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
                               "PRAGMA foreign_keys=ON; PRAGMA temp_store=MEMORY";
  if (auto ok = db.execute(settings); !ok) return fail(std::move(ok).error().context(doing));
  return db;
}

Db::Db(Db&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), watcher_(other.watcher_),
      statements_(std::move(other.statements_)) {}

Db& Db::operator=(Db&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(watcher_, other.watcher_);
  std::swap(statements_, other.statements_);
  return *this;
}

Db::~Db() {
  statements_.clear();
  sqlite3_close(handle_);
}

Result<std::unique_ptr<Stmt>> Db::prepare(const std::string& sql) {
  sqlite3_stmt* prepared = nullptr;
  const int code = sqlite3_prepare_v3(handle_, sql.c_str(), -1, 0, &prepared, nullptr);
  if (code == SQLITE_OK) return std::make_unique<Stmt>(handle_, prepared);
  return fail(from_sqlite(handle_, code, fmt::format("preparing '{}'", sql)));
}

Query Db::query(const char* sql) {
  auto& statement = statements_[sql];
  if (statement == nullptr) {
    sqlite3_stmt* prepared = nullptr;
    const int code =
        sqlite3_prepare_v3(handle_, sql, -1, SQLITE_PREPARE_PERSISTENT, &prepared, nullptr);
    if (code != SQLITE_OK) {
      return Query(from_sqlite(handle_, code, fmt::format("preparing '{}'", sql)));
    }
    statement = std::make_unique<Stmt>(handle_, prepared);
  }
  return Query(statement.get(), watcher_);
}

Result<void> Db::execute(const std::string& sql) {
  const int code = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return fail(from_sqlite(handle_, code, "using the index"));
  return {};
}

std::int64_t Db::changes() const {
  return sqlite3_changes64(handle_);
}

Result<Txn> Txn::begin(Db& db) {
  MODELD_TRY(db.query("BEGIN IMMEDIATE").run());
  return Txn(&db);
}

Txn::~Txn() {
  // Nothing to do about an error: SQLite has rolled back by itself then, or will when it closes.
  if (db_ != nullptr) [[maybe_unused]]
    const auto ignored = db_->execute("ROLLBACK");
}

Result<void> Txn::commit() {
  MODELD_TRY(db_->query("COMMIT").run());
  db_ = nullptr;
  return {};
}

} // namespace modeld::store
