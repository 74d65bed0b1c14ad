// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/services.hpp"
#include "daemon/worker_request.hpp"
#include "schema/snapshot.hpp"

namespace modeld::daemon {

/// A request about all files of a snapshot, and how a worker opens them.
WorkerRequest snapshot_request(const Services& services, const Snapshot& snapshot);
Result<Descriptor> open_snapshot_file(const store::Store& store, const Snapshot& snapshot,
                                      std::size_t index);

/// Headers and index of the weights of files that are in the store, before anything maps them for
/// work; in a worker. A snapshot without safetensors passes without one.
Result<void> check_snapshot(Services& services, Job& job, const Snapshot& snapshot);

/// What is converted: the model, or the projector of one that sees or hears.
enum class ModelPart { model, projector };

/// Whether the configuration names an architecture that can be converted, by the few files that
/// are here already; in a worker. Only what no further file can mend is an error (unsupported).
Result<void> check_architecture(Services& services, Job& job, const Snapshot& early,
                                ModelPart part);

} // namespace modeld::daemon
