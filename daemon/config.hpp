// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace modeld::daemon {

/// Every setting and every limit of the daemon (design rule 6). The table in settings.cpp says for
/// each its name in the file, its range and its meaning; man page and parser both come from it.
struct Config {
  using Milliseconds = std::chrono::milliseconds;

  struct Store {
    std::string root;
    std::string id;
    std::uint64_t min_free = 256U << 20;
    std::uint64_t reserve_file = 64U << 20;
    std::uint64_t max_bytes = 0;
    std::uint64_t user_quota = 0;
    std::string user_quotas;
    std::uint64_t high_water = 0;
    std::uint64_t low_water = 0;
    std::string shared_roots;
    Milliseconds shared_patience{5'000};
    std::uint64_t blob_mode = 0444;
    std::uint64_t folder_mode = 0755;
    std::string group;
  } store;

  struct Server {
    std::string socket;
    std::uint64_t socket_mode = 0666;
    std::string socket_group;
    std::uint64_t max_connections = 1024;
    std::uint64_t max_streams = 256;
    std::uint64_t max_header = 16U << 10;
    std::uint64_t max_body = 1U << 20;
    Milliseconds header_timeout{10'000};
    Milliseconds idle_timeout{60'000};
    Milliseconds write_timeout{30'000};
    Milliseconds heartbeat{15'000};
    Milliseconds progress_interval{200};
    Milliseconds stop_timeout{20'000};
    std::uint64_t io_threads = 2;
    std::uint64_t handler_threads = 4;
  } server;

  struct Hub {
    std::string endpoint = "https://huggingface.co";
    std::string ca_bundle;
    std::string token_file;
    Milliseconds connect_timeout{10'000};
    std::uint64_t low_speed = 1024;
    Milliseconds low_speed_time{30'000};
    Milliseconds head_patience{3'000};
    std::uint64_t max_attempts = 6;
    Milliseconds retry_budget{900'000};
    std::uint64_t max_renewals = 1000;
    std::uint64_t max_redirects = 5;
    std::uint64_t max_parallel = 8;
    std::uint64_t max_ranges = 8;
    std::uint64_t max_buffer = 24U << 20;
    std::uint64_t bandwidth = 0;
    std::string api_mirrors;
    std::string data_mirrors;
    std::string offline = "no";
    std::uint64_t max_answer = 64U << 20;
    std::uint64_t max_pages = 10'000;
    std::uint64_t max_files = 1'000'000;
  } hub;

  struct Jobs {
    std::uint64_t max_pulls = 4;
    std::uint64_t max_builds = 1;
    std::uint64_t max_unfinished = 256;
    std::uint64_t keep_finished = 200;
    std::uint64_t build_threads = 0;
    std::uint64_t worker_memory = 8ULL << 30U;
  } jobs;

  struct Mirror {
    std::string listen;
  } mirror;

  struct Log {
    std::string level = "info";
  } log;
};

/// How a setting is written and what it may be.
struct Setting {
  enum class Kind { text, path, count, bytes, duration, mode };
  using Member = std::variant<std::string* (*)(Config&), std::uint64_t* (*)(Config&),
                              std::chrono::milliseconds* (*)(Config&)>;

  std::string_view name; ///< "section.key", as in the file
  Kind kind;
  Member member;
  std::uint64_t least; ///< of numbers; milliseconds for durations
  std::uint64_t most;
  std::string_view environment; ///< variable that wins over the file; empty: none
  std::string_view meaning;     ///< one sentence, for the man page and --print-config
};

/// Every setting, in the order of the man page.
std::span<const Setting> all_settings();

/// What is given outside of the file; empty strings mean "not given".
struct ConfigSources {
  std::filesystem::path file;      ///< --config: must be there
  std::filesystem::path otherwise; ///< read if it is there, where no file was given
  std::string root;                ///< --root
  std::string socket;              ///< --socket
};

/// Defaults, then the file, then the environment, then the command line. invalid_argument names
/// file, line, setting, the value found and those allowed; an unknown setting names the nearest.
Result<Config> load_config(const ConfigSources& sources);

/// The same from the text of a file, without environment.
Result<Config> parse_config(std::string_view text, std::string_view name);

/// The configuration as a file with a comment for each setting.
std::string print_config(const Config& config);

} // namespace modeld::daemon
