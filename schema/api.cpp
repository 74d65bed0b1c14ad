// SPDX-License-Identifier: Apache-2.0
#include "schema/api.hpp"

#include "schema/json.hpp"

#include <boost/json.hpp>
#include <fmt/format.h>

namespace modeld::api {
namespace {

using boost::json::array;
using boost::json::object;

// Optional members: absent or of another type gives the default.
std::string text_or(const object& from, std::string_view name) {
  const auto* value = from.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

template <class T>
T number_or(const object& from, std::string_view name) {
  const auto* value = from.if_contains(name);
  boost::json::error_code ec;
  if (value == nullptr || !value->is_number()) return T{};
  const T number = value->to_number<T>(ec);
  return ec ? T{} : number;
}

bool flag_or(const object& from, std::string_view name) {
  const auto* value = from.if_contains(name);
  return value != nullptr && value->is_bool() && value->get_bool();
}

} // namespace

object error_to_json(const Error& error) {
  object details;
  for (const auto& [name, value] : error.details) {
    details[name] = value;
  }
  return {{"code", info(error.code).slug},
          {"message", error.message},
          {"hint", error.hint},
          {"details", std::move(details)}};
}

Error error_from_json(const object& from) {
  Error error;
  error.code = errc_from_slug(text_or(from, "code"));
  error.message = text_or(from, "message");
  error.hint = text_or(from, "hint");
  const auto* details = from.if_contains("details");
  if (details == nullptr || !details->is_object()) return error;
  for (const auto& [name, value] : details->get_object()) {
    if (value.is_string()) error.details.emplace_back(name, value.get_string());
  }
  return error;
}

object problem_to_json(const Error& error) {
  const ErrcInfo& row = info(error.code);
  object problem{{"type", fmt::format("urn:modeld:error:{}", row.slug)},
                 {"title", row.slug},
                 {"status", row.http_status},
                 {"detail", error.message}};
  for (auto& [name, value] : error_to_json(error)) {
    problem[name] = value;
  }
  return problem;
}

object Job::to_json() const {
  object out{{"id", id},
             {"kind", kind},
             {"ref", ref},
             {"state", state},
             {"phase", phase},
             {"done", done},
             {"total", total},
             {"rate", rate},
             {"notice", notice},
             {"uid", uid},
             {"created", created},
             {"updated", updated},
             {"limit_rate", limit_rate}};
  if (result) out["result"] = *result;
  if (error) out["error"] = error_to_json(*error);
  return out;
}

Result<Job> Job::from_json(const object& from) {
  Job job;
  MODELD_ASSIGN(job.id, json_string(from, "id"));
  MODELD_ASSIGN(job.kind, json_string(from, "kind"));
  MODELD_ASSIGN(job.ref, json_string(from, "ref"));
  MODELD_ASSIGN(job.state, json_string(from, "state"));
  MODELD_ASSIGN(job.phase, json_string(from, "phase"));
  job.notice = text_or(from, "notice");
  MODELD_ASSIGN(job.done, json_uint(from, "done"));
  MODELD_ASSIGN(job.total, json_uint(from, "total"));
  job.rate = number_or<std::uint64_t>(from, "rate");
  job.limit_rate = number_or<std::uint64_t>(from, "limit_rate");
  job.uid = number_or<std::uint32_t>(from, "uid");
  job.created = number_or<std::int64_t>(from, "created");
  job.updated = number_or<std::int64_t>(from, "updated");
  if (const auto* value = from.if_contains("result"); value != nullptr && value->is_object()) {
    job.result = value->get_object();
  }
  if (const auto* value = from.if_contains("error"); value != nullptr && value->is_object()) {
    job.error = error_from_json(value->get_object());
  }
  return job;
}

object Snapshot::to_json() const {
  array names;
  for (const std::string& name : revisions) {
    names.emplace_back(name);
  }
  return {{"repo", repo},
          {"commit", commit},
          {"path", path},
          {"files", files},
          {"bytes", bytes},
          {"added", added},
          {"used", used},
          {"damaged", damaged},
          {"absent", absent},
          {"absent_bytes", absent_bytes},
          {"revisions", std::move(names)}};
}

Result<Snapshot> Snapshot::from_json(const object& from) {
  Snapshot out;
  MODELD_ASSIGN(out.repo, json_string(from, "repo"));
  MODELD_ASSIGN(out.commit, json_string(from, "commit"));
  MODELD_ASSIGN(out.path, json_string(from, "path"));
  MODELD_ASSIGN(out.files, json_uint(from, "files"));
  MODELD_ASSIGN(out.bytes, json_uint(from, "bytes"));
  out.added = number_or<std::int64_t>(from, "added");
  out.used = number_or<std::int64_t>(from, "used");
  out.damaged = flag_or(from, "damaged");
  out.absent = number_or<std::uint64_t>(from, "absent");
  out.absent_bytes = number_or<std::uint64_t>(from, "absent_bytes");
  MODELD_ASSIGN(const auto* names, json_array(from, "revisions"));
  for (const auto& name : *names) {
    if (name.is_string()) out.revisions.emplace_back(name.get_string());
  }
  return out;
}

object Variant::to_json() const {
  return {{"key", key},       {"repo", repo},   {"commit", commit},
          {"recipe", recipe}, {"path", path},   {"sha256", sha256},
          {"size", size},     {"added", added}, {"build_ms", build_ms}};
}

Result<Variant> Variant::from_json(const object& from) {
  Variant out;
  out.key = text_or(from, "key");
  MODELD_ASSIGN(out.repo, json_string(from, "repo"));
  MODELD_ASSIGN(out.commit, json_string(from, "commit"));
  out.recipe = text_or(from, "recipe");
  MODELD_ASSIGN(out.path, json_string(from, "path"));
  MODELD_ASSIGN(out.sha256, json_string(from, "sha256"));
  MODELD_ASSIGN(out.size, json_uint(from, "size"));
  out.added = number_or<std::int64_t>(from, "added");
  out.build_ms = number_or<std::uint64_t>(from, "build_ms");
  return out;
}

} // namespace modeld::api
