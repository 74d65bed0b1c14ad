// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker_tasks.hpp"
#include "schema/json.hpp"
#include "validate/gguf.hpp"
#include "validate/safetensors.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

#include <optional>

namespace modeld::daemon {
namespace {

// "GN-07": the reader ran into the end of what is there, and not of the file.
constexpr std::string_view k_more_needed = "GN-07";

// The bytes that the header takes; all that is there where it is wrong, which a check will tell.
std::optional<std::uint64_t> header_bytes(std::span<const std::byte> beginning,
                                          const std::string& path, std::uint64_t size) {
  const auto measured = [&](const auto& checked,
                            std::uint64_t end) -> std::optional<std::uint64_t> {
    if (checked.report.has(k_more_needed)) return std::nullopt;
    return checked.value ? end : beginning.size();
  };
  if (path.ends_with(".gguf")) {
    const auto checked = validate::check_gguf(beginning, size, path, validate::Profile::compat);
    return measured(checked, checked.value ? checked.value->data_start : 0);
  }
  const auto checked =
      validate::check_safetensors(beginning, size, path, validate::Profile::compat);
  return measured(checked, checked.value ? checked.value->data_start : 0);
}

} // namespace

Result<void> worker_measure(const WorkerTask& task) {
  MODELD_ASSIGN(const auto* sizes, json_array(task.request.options, "sizes"));
  const auto& entries = task.files.entries();
  if (sizes->size() != entries.size())
    return fail(Errc::malformed, "parsing a worker's request: sizes and files differ in number");
  boost::json::array headers;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const boost::json::object named{{"size", (*sizes)[i]}};
    MODELD_ASSIGN(const std::uint64_t size, json_uint(named, "size"));
    MODELD_ASSIGN(const auto beginning, task.files.bytes(entries[i].path));
    const auto bytes = header_bytes(beginning, entries[i].path, size);
    headers.push_back(bytes ? boost::json::value(*bytes) : boost::json::value(nullptr));
  }
  return send_text(task,
                   boost::json::serialize(boost::json::object{{"headers", std::move(headers)}}));
}

} // namespace modeld::daemon
