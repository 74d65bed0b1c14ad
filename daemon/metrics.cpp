// SPDX-License-Identifier: Apache-2.0
#include "daemon/metrics.hpp"

#include "schema/guarded.hpp"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <map>
#include <utility>

namespace modeld::daemon {
namespace {

// Seconds: an answer from the index takes under a millisecond, a file seconds.
const prometheus::Histogram::BucketBoundaries k_request_seconds{0.0005, 0.001, 0.005, 0.025,
                                                                0.1,    0.5,   2.5,   10};

/// A client may send any word; each would be a counter for ever.
std::string_view known_method(std::string_view method) {
  for (const std::string_view known : {"GET", "HEAD", "POST", "PUT", "DELETE"}) {
    if (method == known) return known;
  }
  return "other";
}

struct Asked {
  prometheus::Gauge* gauge;
  std::function<double()> value;
};

} // namespace

struct Metrics::Impl {
  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& requests;
  prometheus::Histogram& seconds;
  prometheus::Family<prometheus::Counter>& jobs;
  prometheus::Counter& downloaded;
  prometheus::Counter& built;
  Guarded<std::vector<Asked>> asked;
  Guarded<std::map<std::string, std::map<int, prometheus::Counter*>, std::less<>>> request_counters;

  Impl()
      : requests(prometheus::BuildCounter()
                     .Name("modeld_requests_total")
                     .Help("Requests answered")
                     .Register(registry)),
        seconds(prometheus::BuildHistogram()
                    .Name("modeld_request_seconds")
                    .Help("Time from a whole request to its answer")
                    .Register(registry)
                    .Add({}, k_request_seconds)),
        jobs(prometheus::BuildCounter()
                 .Name("modeld_jobs_finished_total")
                 .Help("Jobs finished, by kind and state")
                 .Register(registry)),
        downloaded(prometheus::BuildCounter()
                       .Name("modeld_downloaded_bytes_total")
                       .Help("Bytes received from the Hub")
                       .Register(registry)
                       .Add({})),
        built(prometheus::BuildCounter()
                  .Name("modeld_built_bytes_total")
                  .Help("Bytes of built files")
                  .Register(registry)
                  .Add({})) {}

  /// Known ones without the maps of labels that the library wants.
  prometheus::Counter& request_counter(std::string_view method, int status) {
    auto known = request_counters.lock();
    const auto by_status = known->find(method);
    if (by_status != known->end()) {
      if (const auto at = by_status->second.find(status); at != by_status->second.end()) {
        return *at->second;
      }
    }
    std::string name(method);
    auto& counter = requests.Add({{"method", name}, {"status", std::to_string(status)}});
    (*known)[std::move(name)][status] = &counter;
    return counter;
  }
};

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {}
Metrics::~Metrics() = default;

void Metrics::request(std::string_view method, int status, std::chrono::nanoseconds time) {
  impl_->request_counter(known_method(method), status).Increment();
  impl_->seconds.Observe(std::chrono::duration<double>(time).count());
}

void Metrics::job_finished(std::string_view kind, std::string_view state) {
  impl_->jobs.Add({{"kind", std::string(kind)}, {"state", std::string(state)}}).Increment();
}

void Metrics::bytes_downloaded(std::uint64_t bytes) {
  impl_->downloaded.Increment(static_cast<double>(bytes));
}

void Metrics::bytes_built(std::uint64_t bytes) {
  impl_->built.Increment(static_cast<double>(bytes));
}

void Metrics::gauge(std::string name, std::string help, std::function<double()> value) {
  auto& family = prometheus::BuildGauge().Name(name).Help(help).Register(impl_->registry);
  impl_->asked.lock()->push_back({&family.Add({}), std::move(value)});
}

std::string Metrics::text() {
  const std::vector<Asked> asked = *impl_->asked.lock();
  for (const Asked& one : asked) {
    one.gauge->Set(one.value());
  }
  return prometheus::TextSerializer().Serialize(impl_->registry.Collect());
}

} // namespace modeld::daemon
