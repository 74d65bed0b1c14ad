// SPDX-License-Identifier: Apache-2.0
#include "daemon/safe_json.hpp"
#include "daemon/worker_tasks.hpp"
#include "store/gguf_facts.hpp"

#include <boost/json.hpp>

#include <string>

namespace modeld::daemon {
namespace {

// Not in the middle of a character.
std::string beginning(std::string text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0U) == 0x80U) {
    --most;
  }
  text.resize(most);
  return text;
}

} // namespace

Result<void> worker_facts(const WorkerTask& task) {
  // The texts are for recognising a prompt format and for naming a licence.
  constexpr std::size_t k_most_text = 64U << 10;
  const auto& entries = task.files.entries();
  if (entries.size() != 1) {
    return fail(Errc::malformed, "parsing a worker's request: facts are of one file");
  }
  const std::string& path = entries.front().path;
  MODELD_ASSIGN(const auto bytes, task.files.bytes(path));
  MODELD_ASSIGN(const auto facts, store::read_gguf_facts(bytes, path));
  return send_text(task, safe_json(boost::json::object{
                             {"architecture", beginning(facts.architecture, 256)},
                             {"parameters", facts.parameters},
                             {"file_type", facts.file_type},
                             {"chat_template", beginning(facts.chat_template, k_most_text)},
                             {"license", beginning(facts.license, k_most_text)}}));
}

} // namespace modeld::daemon
