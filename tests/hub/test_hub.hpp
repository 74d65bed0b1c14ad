// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/hub/fault_script.hpp"
#include "tests/hub/http_message.hpp"
#include "tests/hub/repositories.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace modeld::test {

struct HubConfig {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;      ///< 0: a free one
  std::uint16_t data_port = 0; ///< of the storage that large files are redirected to
  std::string prefix;          ///< path of the endpoint, such as "/hf"
  std::size_t page_size = 1000;
  std::int64_t signed_ttl = 3600; ///< seconds
  LfsRule lfs;
  bool tls = false; ///< both origins, with a certificate made for this Hub: ca_pem()
};

/// A request that arrived, with every byte of it.
struct SeenRequest {
  Request request;
  std::string raw;
  unsigned status = 0; ///< that it was answered with
};

/// A local Hub on two loopback origins: the site, and the storage for large files. Serves from the
/// constructor on until stop() or the destructor. Every member may be called from any thread; what
/// is changed holds from the next request on.
class TestHub {
public:
  explicit TestHub(HubConfig config = {});
  ~TestHub();

  /// "http://127.0.0.1:PORT/prefix": what goes into HF_ENDPOINT.
  const std::string& endpoint() const;
  const std::string& data_endpoint() const;

  /// Makes a commit and points the branch (or "refs/pr/N") at it; returns its id.
  std::string add_folder(const std::string& id, const std::filesystem::path& folder,
                         std::string_view branch = "main");
  std::string add_repo(const std::string& id,
                       const std::vector<std::pair<std::string, std::string>>& files,
                       std::string_view branch = "main");
  /// Any change: tags, access, renames, tokens.
  void change(const std::function<void(Repositories&)>& edit);
  HubRepository repository(const std::string& id) const;

  /// Unix time that signed addresses are made and judged by; null: the real one.
  void set_clock(std::function<std::int64_t()> now);

  /// Misbehaviour; empty at the start.
  FaultScript& script();
  /// Adds one rule; throws std::invalid_argument for an unknown fault.
  void misbehave(FaultRule rule);

  /// Every answer that is on its way is kept silent by the script, and has been for 10 ms: only
  /// time can go on.
  bool silent() const;

  /// What a client has to trust to talk to a TLS Hub.
  const std::string& ca_pem() const;

  std::vector<SeenRequest> requests() const;
  void forget_requests();
  /// Connections that were accepted, on both origins.
  std::uint64_t connections() const;
  void stop();

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace modeld::test
