// SPDX-License-Identifier: Apache-2.0
#include "daemon/config.hpp"

#include <array>

// The one table of settings. Sizes may be written as whole bytes or with KiB, MiB, GiB, TiB;
// durations with ms, s, m, h; modes in octal as text.

namespace modeld::daemon {
namespace {

using Kind = Setting::Kind;

constexpr std::uint64_t k_second = 1000;
constexpr std::uint64_t k_hour = 3600 * k_second;
constexpr std::uint64_t k_mib = 1U << 20;
constexpr std::uint64_t k_tib = std::uint64_t{1} << 40;

// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): a member of a member has no pointer-to-member.
#define MEMBER(field) [](Config& c) { return &c.field; }

constexpr std::array k_settings{
    Setting{"store.root", Kind::path, MEMBER(store.root), 0, 0, "MODELD_ROOT",
            "Folder of the store."},
    Setting{"store.id", Kind::text, MEMBER(store.id), 0, 0, "",
            "Id that the store there must have, as modelctl health --json shows it: with it, an "
            "empty folder where a disk is not mounted never becomes a new store."},
    Setting{"store.min_free", Kind::bytes, MEMBER(store.min_free), 0, 1024 * k_tib, "",
            "Space that downloads and builds leave free on the store's file system."},
    Setting{"store.reserve_file", Kind::bytes, MEMBER(store.reserve_file), 0, k_tib, "",
            "Size of a file that is given up when the disk is full, so that collection can run."},
    Setting{"store.max_bytes", Kind::bytes, MEMBER(store.max_bytes), 0, 1024 * k_tib, "",
            "What all files together may take; 0 for as much as the disk holds."},
    Setting{
        "store.user_quota", Kind::bytes, MEMBER(store.user_quota), 0, 1024 * k_tib, "",
        "What the files of one user may take, root's and the daemon's own too; 0 for no limit. A "
        "file counts for the user whose request brought it, once, for as long as a model has "
        "it; who asks for what is here pays nothing."},
    Setting{"store.user_quotas", Kind::text, MEMBER(store.user_quotas), 0, 0, "",
            "Other quotas for single users, by name or user id, with spaces between: "
            "alice=50GiB 1002=0."},
    Setting{"store.high_water", Kind::bytes, MEMBER(store.high_water), 0, 1024 * k_tib, "",
            "Once all files take more than this, a collection starts by itself; 0 for never."},
    Setting{"store.low_water", Kind::bytes, MEMBER(store.low_water), 0, 1024 * k_tib, "",
            "What such a collection leaves, least recently used first; 0 for nine tenths of "
            "store.high_water."},
    Setting{"store.shared_roots", Kind::text, MEMBER(store.shared_roots), 0, 0, "",
            "Folders of other stores, read only, with colons between: what this store has not is "
            "taken from there."},
    Setting{"store.shared_patience", Kind::duration, MEMBER(store.shared_patience), 10, k_hour, "",
            "How long a look at one of them may stand still before others do without it: a network "
            "disk whose server is away hangs."},
    Setting{"store.blob_mode", Kind::mode, MEMBER(store.blob_mode), 0400, 0444, "",
            "Mode of stored files: readable only, by whom is the choice."},
    Setting{
        "store.folder_mode", Kind::mode, MEMBER(store.folder_mode), 0700, 02775, "",
        "Mode of the store's folders, whatever the umask is; 2750 keeps the group of the root."},

    Setting{"store.group", Kind::text, MEMBER(store.group), 0, 0, "",
            "Group of all files and folders of the store, by name or id, so that programs of its "
            "members can read them; folders hand it on. The daemon must be a member. Empty for "
            "the daemon's own."},

    Setting{"server.socket", Kind::path, MEMBER(server.socket), 0, 0, "MODELD_SOCKET",
            "Where the daemon listens, where systemd does not hand it a socket."},
    Setting{"server.socket_mode", Kind::mode, MEMBER(server.socket_mode), 0, 0777, "",
            "Mode of that socket."},
    Setting{"server.socket_group", Kind::text, MEMBER(server.socket_group), 0, 0, "",
            "Group of that socket, by name or id; empty for the daemon's own."},
    Setting{"server.max_connections", Kind::count, MEMBER(server.max_connections), 1, 65'536, "",
            "Connections at once; further ones wait in the kernel's queue."},
    Setting{"server.max_streams", Kind::count, MEMBER(server.max_streams), 1, 65'536, "",
            "Event streams at once."},
    Setting{"server.max_header", Kind::bytes, MEMBER(server.max_header), 1024, k_mib, "",
            "Longest head of a request."},
    Setting{"server.max_body", Kind::bytes, MEMBER(server.max_body), 1024, 64 * k_mib, "",
            "Longest body of a request."},
    Setting{"server.header_timeout", Kind::duration, MEMBER(server.header_timeout), 100, k_hour, "",
            "For a request to arrive once its first byte has."},
    Setting{"server.idle_timeout", Kind::duration, MEMBER(server.idle_timeout), 100, 24 * k_hour,
            "", "For the next request on an open connection that holds no lease."},
    Setting{"server.write_timeout", Kind::duration, MEMBER(server.write_timeout), 100, k_hour, "",
            "For a client to take the next piece of an answer."},
    Setting{"server.heartbeat", Kind::duration, MEMBER(server.heartbeat), 100, k_hour, "",
            "Longest silence of an event stream."},
    Setting{"server.progress_interval", Kind::duration, MEMBER(server.progress_interval), 20,
            60 * k_second, "", "Time between two progress events."},
    Setting{"server.stop_timeout", Kind::duration, MEMBER(server.stop_timeout), 100, k_hour, "",
            "For jobs to reach a point from which they can go on, when the daemon stops."},
    Setting{"server.io_threads", Kind::count, MEMBER(server.io_threads), 1, 64, "",
            "Threads that move bytes of connections."},
    Setting{"server.handler_threads", Kind::count, MEMBER(server.handler_threads), 1, 256, "",
            "Threads that answer requests."},

    Setting{"hub.endpoint", Kind::text, MEMBER(hub.endpoint), 0, 0, "HF_ENDPOINT",
            "Address of the Hub."},
    Setting{"hub.ca_bundle", Kind::path, MEMBER(hub.ca_bundle), 0, 0, "",
            "Certificates to trust, in PEM; empty for SSL_CERT_FILE, REQUESTS_CA_BUNDLE or "
            "CURL_CA_BUNDLE, else the system's."},
    Setting{
        "hub.token_file", Kind::path, MEMBER(hub.token_file), 0, 0, "",
        "File of mode 0600 with a Hub token for callers who show none of their own: all users of "
        "the daemon may then read what it opens."},
    Setting{"hub.connect_timeout", Kind::duration, MEMBER(hub.connect_timeout), 100, k_hour, "",
            "For a connection to the Hub to stand."},
    Setting{"hub.low_speed", Kind::bytes, MEMBER(hub.low_speed), 1, k_tib, "",
            "Bytes per second below which a transfer counts as stalled."},
    Setting{"hub.low_speed_time", Kind::duration, MEMBER(hub.low_speed_time), 100, k_hour, "",
            "How long a transfer may be that slow before its connection is replaced."},
    Setting{"hub.head_patience", Kind::duration, MEMBER(hub.head_patience), 100, k_hour, "",
            "How long a range of a large file may stand still while all behind it wait for it."},
    Setting{"hub.max_attempts", Kind::count, MEMBER(hub.max_attempts), 1, 1000, "",
            "Failures in a row, without a new byte, before a request is given up."},
    Setting{"hub.retry_budget", Kind::duration, MEMBER(hub.retry_budget), 0, 24 * k_hour, "",
            "Waiting for failures and rate limits, in all, for each step of a pull."},
    Setting{"hub.max_renewals", Kind::count, MEMBER(hub.max_renewals), 0, 1'000'000, "",
            "New signed addresses for one file."},
    Setting{"hub.max_redirects", Kind::count, MEMBER(hub.max_redirects), 0, 50, "",
            "Redirects of one request."},
    Setting{"hub.max_parallel", Kind::count, MEMBER(hub.max_parallel), 1, 256, "",
            "Transfers at once, for each pull."},
    Setting{"hub.max_ranges", Kind::count, MEMBER(hub.max_ranges), 1, 64, "",
            "Ranges of one large file at once."},
    Setting{"hub.max_buffer", Kind::bytes, MEMBER(hub.max_buffer), k_mib, 64 * 1024 * k_mib, "",
            "Memory for ranges that arrive ahead of their turn, for each pull."},
    Setting{
        "hub.bandwidth", Kind::bytes, MEMBER(hub.bandwidth), 0, k_tib, "",
        "Bytes per second of all pulls together; 0 for as much as there is. modelctl jobs limit "
        "changes it while they run."},
    Setting{"hub.api_mirrors", Kind::text, MEMBER(hub.api_mirrors), 0, 0, "",
            "Addresses to ask before the Hub about revisions and listings, with spaces between."},
    Setting{"hub.data_mirrors", Kind::text, MEMBER(hub.data_mirrors), 0, 0, "",
            "Addresses to fetch files from before the Hub, with spaces between."},
    Setting{"hub.offline", Kind::text, MEMBER(hub.offline), 0, 0, "HF_HUB_OFFLINE",
            "Whether the network is left alone: yes or no."},
    Setting{"hub.max_answer", Kind::bytes, MEMBER(hub.max_answer), 1024, 1024 * k_mib, "",
            "Longest answer that is not a file."},
    Setting{"hub.max_pages", Kind::count, MEMBER(hub.max_pages), 1, 1'000'000, "",
            "Pages of a listing."},
    Setting{"hub.max_files", Kind::count, MEMBER(hub.max_files), 1, 10'000'000, "",
            "Files of a repository."},

    Setting{"jobs.max_pulls", Kind::count, MEMBER(jobs.max_pulls), 1, 64, "", "Pulls at once."},
    Setting{"jobs.max_builds", Kind::count, MEMBER(jobs.max_builds), 1, 64, "",
            "Builds at once; each uses all threads of jobs.build_threads."},
    Setting{"jobs.max_unfinished", Kind::count, MEMBER(jobs.max_unfinished), 1, 100'000, "",
            "Jobs that wait or run; further requests are told to come again."},
    Setting{"jobs.keep_finished", Kind::count, MEMBER(jobs.keep_finished), 0, 1'000'000, "",
            "Finished jobs that are remembered."},
    Setting{"jobs.build_threads", Kind::count, MEMBER(jobs.build_threads), 0, 1024, "",
            "Threads of a build; 0 for one for each processor."},
    Setting{"jobs.worker_memory", Kind::bytes, MEMBER(jobs.worker_memory), 64 * k_mib, 1024 * k_tib,
            "", "Memory of its own that a process which reads a stranger's files may have."},

    Setting{"mirror.listen", Kind::text, MEMBER(mirror.listen), 0, 0, "",
            "Loopback address and port at which Hub clients get what is here and open to all, "
            "with HF_ENDPOINT; empty for none."},

    Setting{"log.level", Kind::text, MEMBER(log.level), 0, 0, "MODELD_LOG",
            "What is logged: error, warning, info or debug."},
};

#undef MEMBER

} // namespace

std::span<const Setting> all_settings() {
  return k_settings;
}

} // namespace modeld::daemon
