// SPDX-License-Identifier: Apache-2.0
#include "daemon/watch.hpp"

#include "daemon/human_text.hpp"
#include "daemon/terminal_width.hpp"
#include "schema/json.hpp"

#include <fmt/format.h>

#include <chrono>

namespace modeld::daemon {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds k_line_every{10}; // in a log, where there is no bar
constexpr std::chrono::seconds k_away{60};       // how long a daemon may be restarting
constexpr std::chrono::milliseconds k_look_again{250};

// Draws what events tell.
class Progress {
public:
  explicit Progress(Output& out) : out_(out) {}

  void show(const api::Job& job) {
    if (job.finished()) return out_.progress({});
    if (out_.terminal()) return out_.progress(progress_line(job, terminal_width()));
    const bool news = job.phase != phase_ || job.notice != notice_;
    if (!news && Clock::now() - last_ < k_line_every) return;
    phase_ = job.phase;
    notice_ = job.notice;
    last_ = Clock::now();
    if (job.state == "running") out_.message(progress_text(job));
  }

private:
  Output& out_;
  std::string phase_;
  std::string notice_;
  Clock::time_point last_ = Clock::now();
};

Error interrupted(std::string_view job) {
  return {Errc::cancelled,
          fmt::format("interrupted; job '{}' goes on", job),
          fmt::format("modelctl watch {} shows it, modelctl cancel {} ends it", job, job),
          {{"job", std::string(job)}},
          0};
}

struct Watch {
  std::optional<api::Job> ended;
  std::uint64_t seen = 0;
};

// One connection's worth of events.
Result<void> follow(Client& client, std::string_view job, const Interrupt& interrupt,
                    Progress& progress, Watch& watch) {
  return client.events(job, watch.seen, interrupt, [&](const Client::Event& event) {
    watch.seen = event.number;
    progress.show(event.job);
    if (event.type != "end") return true;
    watch.ended = event.job;
    return false;
  });
}

Result<boost::json::object> outcome(const api::Job& job) {
  if (job.error) return fail(*job.error);
  return job.result.value_or(boost::json::object{});
}

} // namespace

Result<boost::json::object> watch_job(CommandContext& context, Client& client,
                                      std::string_view job) {
  const Interrupt interrupt;
  Progress progress(context.out);
  Watch watch;
  auto away_since = Clock::time_point::max();
  while (true) {
    const std::uint64_t before = watch.seen;
    auto done = follow(client, job, interrupt, progress, watch);
    context.out.progress({});
    if (watch.ended) return outcome(*watch.ended);
    if (interrupt.requested()) return fail(interrupted(job));
    if (done || done.error().code != Errc::unreachable) {
      return fail(done ? Error{Errc::internal, "watching a job: its events ended early", {}, {}, 0}
                       : std::move(done).error());
    }
    // The daemon is gone. Where it comes back, the job goes on.
    const auto now = Clock::now();
    if (away_since == Clock::time_point::max() || watch.seen != before) {
      context.out.message("the daemon went away; waiting for it to come back");
      away_since = now;
      watch.seen = 0; // numbers start again with the daemon
    }
    if (now - away_since > k_away) {
      return fail(std::move(done).error().with_hint(
          fmt::format("job '{}' goes on when the daemon is started again", job)));
    }
    if (interrupt.wait(k_look_again)) return fail(interrupted(job));
  }
}

Result<boost::json::object> finish(CommandContext& context, Client& client, Client::Answer answer,
                                   Wait wait) {
  const auto* shown = answer.body.if_contains("job");
  if (answer.status != 202 || shown == nullptr || !shown->is_object()) {
    return std::move(answer.body);
  }
  if (wait == Wait::no) return std::move(answer.body);
  MODELD_ASSIGN(const auto job, api::Job::from_json(shown->get_object()));
  return watch_job(context, client, job.id);
}

} // namespace modeld::daemon
