// SPDX-License-Identifier: Apache-2.0
#include "daemon/request.hpp"

#include "daemon/pull_report.hpp"
#include "schema/json.hpp"
#include "schema/model_ref.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

namespace modeld::daemon {

Result<void> check_ref(std::string_view ref) {
  MODELD_TRY(ModelRef::parse(ref));
  return {};
}

Result<const boost::json::object*> object_member(const boost::json::object& from,
                                                 std::string_view name) {
  const auto* found = from.if_contains(name);
  if (found != nullptr && found->is_object()) return &found->get_object();
  return fail(Errc::internal, fmt::format("reading the daemon's answer: it has no '{}'", name));
}

Result<int> show_result(CommandContext& context, const boost::json::object& result,
                        std::string_view member) {
  for (const std::string& line : pull_report_lines(result)) {
    context.out.message(line);
  }
  if (context.out.json()) {
    context.out.result(result);
    return 0;
  }
  if (const auto* job = result.if_contains("job"); job != nullptr && job->is_object()) {
    MODELD_ASSIGN(const auto id, json_string(job->get_object(), "id"));
    context.out.message(fmt::format("modelctl watch {} shows it", id));
    context.out.result(id);
    return 0;
  }
  const auto* found = result.if_contains(member);
  if (found == nullptr || !found->is_object()) {
    return fail(Errc::internal, fmt::format("reading the daemon's answer: it has no '{}'", member));
  }
  MODELD_ASSIGN(const auto path, json_string(found->get_object(), "path"));
  context.out.result(path);
  return 0;
}

} // namespace modeld::daemon
