// SPDX-License-Identifier: Apache-2.0
#include "tests/support/counting_memory.hpp"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> g_live{0};
std::atomic<std::size_t> g_peak{0};

void* take(std::size_t size) {
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  const std::size_t live = g_live += malloc_usable_size(memory);
  std::size_t peak = g_peak;
  while (live > peak && !g_peak.compare_exchange_weak(peak, live)) {
  }
  return memory;
}

void give(void* memory) noexcept {
  if (memory == nullptr) return;
  g_live -= malloc_usable_size(memory);
  std::free(memory);
}

} // namespace

void* operator new(std::size_t size) {
  return take(size);
}
void* operator new[](std::size_t size) {
  return take(size);
}
void operator delete(void* memory) noexcept {
  give(memory);
}
void operator delete[](void* memory) noexcept {
  give(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  give(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  give(memory);
}

std::size_t modeld::test::peak_memory(const std::function<void()>& work) {
  const std::size_t before = g_live;
  g_peak = before;
  work();
  return g_peak - before;
}
