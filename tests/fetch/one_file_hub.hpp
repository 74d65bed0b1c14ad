// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fetch/hub_client.hpp"
#include "tests/fetch/fetch_hosts.hpp"
#include "tests/fetch/test_bytes.hpp"
#include "tests/hub/test_hub.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace modeld::test {

/// A Hub with "org/name", whose one file "model.bin" is listed already and fetched in parts.
struct OneFileHub {
  OneFileHub(std::size_t size, std::uint64_t part) : bytes(random_bytes(size)) {
    commit = GitOid::parse(hub.add_repo(repo.text, {{"model.bin", bytes}})).value();
    TestHost host;
    options.endpoint = hub.endpoint();
    options.part_bytes = part;
    files = fetch::HubClient::create(options).value().list(repo, commit, {}, host).value();
    hub.forget_requests();
  }
  Result<void> fetch(MemoryDownload& download) const {
    return fetch::HubClient::create(options).value().download(repo, commit, download.downloads, {},
                                                              download);
  }
  /// A fault in the answers that cover this byte of the file.
  static FaultRule rule_at(std::string fault, std::uint64_t covers, std::uint64_t at = 0) {
    FaultRule rule;
    rule.fault = std::move(fault);
    rule.at = at;
    rule.match.origin = Origin::data;
    rule.match.covers = covers;
    return rule;
  }

  RepoId repo{"org/name"};
  std::string bytes;
  TestHub hub;
  GitOid commit;
  fetch::HubOptions options;
  std::vector<ListedFile> files;
};

} // namespace modeld::test
