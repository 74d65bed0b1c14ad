// SPDX-License-Identifier: Apache-2.0
#include "tests/hub/test_hub.hpp"

#include "schema/guarded.hpp"
#include "tests/hub/certificate.hpp"
#include "tests/hub/routes.hpp"
#include "tests/hub/server.hpp"

#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <mutex>
#include <stdexcept>

namespace modeld::test {
namespace {

constexpr std::chrono::milliseconds k_quiet{10};

} // namespace

struct TestHub::Impl {
  explicit Impl(HubConfig with)
      : config(std::move(with)),
        certificate(config.tls ? make_certificate(config.address) : Certificate{}),
        tls(config.tls ? make_tls_context(certificate) : nullptr),
        hub(config.address, config.port, tls.get()),
        data(config.address, config.data_port, tls.get()) {
    const auto origin = [this](const Server& server) {
      const bool six = config.address.find(':') != std::string::npos;
      return fmt::format("{}://{}{}{}:{}", config.tls ? "https" : "http", six ? "[" : "",
                         config.address, six ? "]" : "", server.port());
    };
    context.endpoint = origin(hub) + config.prefix;
    context.prefix = config.prefix;
    context.data_endpoint = origin(data);
    context.page_size = config.page_size;
    context.signed_ttl = config.signed_ttl;
    context.now = [this] {
      const auto clock = now.lock();
      return *clock ? (*clock)() : static_cast<std::int64_t>(std::time(nullptr));
    };
  }

  SendPlan handle(Origin origin, Request request, const std::string& raw) {
    request.origin = origin;
    const auto state = *repositories.lock();
    SendPlan plan = script.apply(
        request, [&](const Request& asked) { return Routes(context, state).answer(asked); });
    seen.lock()->push_back({std::move(request), raw, plan.answer.status});
    return plan;
  }

  HubConfig config;
  RouteContext context;
  Guarded<std::shared_ptr<const Repositories>> repositories{std::make_shared<const Repositories>()};
  Guarded<std::function<std::int64_t()>> now;
  Guarded<std::vector<SeenRequest>> seen;
  Guarded<std::chrono::steady_clock::time_point> quiet_since;
  std::mutex editing; ///< one change at a time
  FaultScript script;
  Certificate certificate;
  std::unique_ptr<boost::asio::ssl::context> tls;
  Server hub; ///< last: their threads use the members above
  Server data;
};

TestHub::TestHub(HubConfig config) : impl_(std::make_unique<Impl>(std::move(config))) {
  const auto handler = [this](Origin origin) {
    return [impl = impl_.get(), origin](const Request& request, const std::string& raw) {
      return impl->handle(origin, request, raw);
    };
  };
  impl_->hub.start(handler(Origin::hub));
  impl_->data.start(handler(Origin::data));
}

TestHub::~TestHub() {
  stop();
}

const std::string& TestHub::endpoint() const {
  return impl_->context.endpoint;
}

const std::string& TestHub::data_endpoint() const {
  return impl_->context.data_endpoint;
}

std::string TestHub::add_folder(const std::string& id, const std::filesystem::path& folder,
                                std::string_view branch) {
  const auto commit = HubCommit::from_folder(folder, impl_->config.lfs);
  change([&](Repositories& repositories) { repositories.add(id, branch, commit); });
  return commit->id().hex();
}

std::string TestHub::add_repo(const std::string& id,
                              const std::vector<std::pair<std::string, std::string>>& files,
                              std::string_view branch) {
  const auto commit = HubCommit::from_bytes(files, impl_->config.lfs);
  change([&](Repositories& repositories) { repositories.add(id, branch, commit); });
  return commit->id().hex();
}

void TestHub::change(const std::function<void(Repositories&)>& edit) {
  const std::lock_guard one(impl_->editing);
  auto next = std::make_shared<Repositories>(**impl_->repositories.lock());
  edit(*next);
  *impl_->repositories.lock() = std::move(next);
}

HubRepository TestHub::repository(const std::string& id) const {
  const auto state = *impl_->repositories.lock();
  const HubRepository* found = state->find(id);
  if (found == nullptr) throw std::out_of_range("no repository " + id);
  return *found;
}

void TestHub::set_clock(std::function<std::int64_t()> now) {
  *impl_->now.lock() = std::move(now);
}

FaultScript& TestHub::script() {
  return impl_->script;
}

void TestHub::misbehave(FaultRule rule) {
  if (auto added = impl_->script.add(std::move(rule)); !added) {
    throw std::invalid_argument(added.error().message);
  }
}

bool TestHub::silent() const {
  const int stalled = impl_->script.stalling();
  const auto now = std::chrono::steady_clock::now();
  const bool quiet = stalled > 0 && impl_->hub.answering() + impl_->data.answering() == stalled;
  const auto since = impl_->quiet_since.lock();
  if (!quiet || *since == std::chrono::steady_clock::time_point{}) {
    *since = quiet ? now : std::chrono::steady_clock::time_point{};
    return false;
  }
  if (now - *since < k_quiet) return false;
  *since = now; // and again 10 ms before the next step of time
  return true;
}

const std::string& TestHub::ca_pem() const {
  return impl_->certificate.certificate_pem;
}

std::vector<SeenRequest> TestHub::requests() const {
  return *impl_->seen.lock();
}

void TestHub::forget_requests() {
  impl_->seen.lock()->clear();
}

std::uint64_t TestHub::connections() const {
  return impl_->hub.connections() + impl_->data.connections();
}

void TestHub::stop() {
  impl_->hub.stop();
  impl_->data.stop();
}

} // namespace modeld::test
