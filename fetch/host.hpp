// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/byte_sink.hpp"
#include "schema/result.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace modeld::fetch {

using Clock = std::chrono::steady_clock;

/// What the client waits for, in words for a job's status.
struct Notice {
  enum class Kind {
    retry,        ///< a request failed and is sent again after `wait`
    rate_limited, ///< the Hub told us to wait; every transfer waits
    stalled,      ///< a connection went silent and is replaced
    renewed,      ///< a signed address expired and was asked for again
    restarted,    ///< the bytes so far cannot be continued; the file starts at 0
    moved,        ///< the repository has a new name
  };
  Kind kind;
  std::string what; ///< one line, without tokens and signatures
  std::chrono::milliseconds wait{0};
};

/// The world as the client sees it: time, chance and the wish to stop. The defaults are the real
/// ones; tests own time by overriding them. Called on the thread that called the client only.
class Host {
public:
  Host() = default;
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  virtual ~Host() = default;

  /// True: stop within 100 ms, and what putting parts on shelves takes, with Errc::cancelled. Asked
  /// at least ten times a second.
  virtual bool cancelled() = 0;
  virtual void on_notice(const Notice&) {}

  virtual Clock::time_point now();
  /// May return early; the client looks at now() again.
  virtual void sleep(Clock::duration time);
  /// In [0, 1): spreads the retries of many clients.
  virtual double jitter();
};

/// What a server said that its bytes are: its strong ETag, good at that origin only. A later
/// request for the rest asks by it whether the file is still the same (If-Range).
struct Validator {
  std::string origin; ///< "https://host:443"
  std::string etag;   ///< with its quotes; empty: none

  friend bool operator==(const Validator& a, const Validator& b) {
    return a.origin == b.origin && a.etag == b.etag;
  }
  friend bool operator!=(const Validator& a, const Validator& b) { return !(a == b); }
};

/// What the caller of HubClient::download does with the files.
class DownloadHost : public Host {
public:
  /// Bytes of one file that are in its sink now; goes back to 0 after on_restart.
  virtual void on_progress(std::size_t index, std::uint64_t bytes) = 0;
  /// What the bytes of a file are from here on, before the first of them: to be kept with them, for
  /// Download::validator.
  virtual void on_validator(std::size_t index, const Validator& validator) {
    static_cast<void>(index);
    static_cast<void>(validator);
  }
  /// All `size` bytes of a file are in its sink: the caller proves the digest and publishes. An
  /// error of code digest_mismatch has the file fetched once more from the start (on_restart);
  /// any other ends the download.
  virtual Result<void> on_file_done(std::size_t index) = 0;
  /// What the sink has cannot be continued (the server's file changed, or its digest is wrong):
  /// drops it and gives a sink that starts at offset 0. The shelf has been cleared.
  virtual Result<ByteSink*> on_restart(std::size_t index) = 0;
};

} // namespace modeld::fetch
