// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <utility>

namespace modeld {

/// A value that can only be reached while its mutex is held. Never hold the lock over network,
/// disk or hashing.
template <class T>
class Guarded {
public:
  Guarded() = default;
  explicit Guarded(T value) : value_(std::move(value)) {}

  class Lock {
  public:
    T* operator->() const { return value_; }
    T& operator*() const { return *value_; }
    /// For condition variables.
    std::unique_lock<std::mutex>& mutex() { return lock_; }

  private:
    friend Guarded;
    Lock(std::mutex& mutex, T& value) : lock_(mutex), value_(&value) {}
    std::unique_lock<std::mutex> lock_;
    T* value_;
  };

  Lock lock() { return Lock(mutex_, value_); }

private:
  std::mutex mutex_;
  T value_{};
};

} // namespace modeld
