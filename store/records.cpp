// SPDX-License-Identifier: Apache-2.0
#include "store/records.hpp"

#include <array>
#include <ctime>
#include <utility>

namespace modeld::store {
namespace {

constexpr std::array<std::pair<JobState, std::string_view>, 5> k_states{{
    {JobState::queued, "queued"},
    {JobState::running, "running"},
    {JobState::done, "done"},
    {JobState::failed, "failed"},
    {JobState::cancelled, "cancelled"},
}};

} // namespace

UnixTime now() {
  return std::time(nullptr);
}

std::string_view slug(JobState state) {
  return k_states[static_cast<std::size_t>(state)].second;
}

std::optional<JobState> job_state_from_slug(std::string_view text) {
  for (const auto& [state, name] : k_states) {
    if (name == text) return state;
  }
  return std::nullopt;
}

bool is_final(JobState state) {
  return state != JobState::queued && state != JobState::running;
}

} // namespace modeld::store
