// SPDX-License-Identifier: Apache-2.0
#include "daemon/limit_rate.hpp"

#include "daemon/size_text.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

namespace modeld::daemon {

void add_limit_rate(CLI::App& command, std::string& text) {
  command
      .add_option("--limit-rate", text,
                  "Bytes per second that the download may take, as in 20MiB, or none; modelctl "
                  "jobs limit changes it while it runs")
      ->type_name("RATE");
}

Result<void> put_limit_rate(boost::json::object& body, const std::string& text) {
  if (text.empty()) return {};
  MODELD_ASSIGN(body["limit_rate"], parse_rate(text, "--limit-rate"));
  return {};
}

} // namespace modeld::daemon
