// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace modeld::daemon {

/// The descriptor on which a worker finds its channel.
inline constexpr int k_worker_descriptor = 3;

/// `modeld worker`: does what the daemon at the other end of descriptor 3 asks for, in a sandbox,
/// and ends. The exit status says only whether it could talk.
int run_worker();

} // namespace modeld::daemon
