// SPDX-License-Identifier: Apache-2.0
#include "tests/hub/git_objects.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <stdexcept>

namespace modeld::test {
namespace {

GitOid git_object_id(std::string_view kind, std::string_view body) {
  std::string text = fmt::format("{} {}", kind, body.size());
  text.push_back('\0');
  text += body;
  GitOid oid;
  if (EVP_Digest(text.data(), text.size(), reinterpret_cast<unsigned char*>(oid.bytes.data()),
                 nullptr, EVP_sha1(), nullptr) != 1) {
    throw std::runtime_error("SHA-1 is not available");
  }
  return oid;
}

} // namespace

GitOid git_tree_id(std::vector<TreeLine> lines) {
  const auto key = [](const TreeLine& line) { return line.folder ? line.name + '/' : line.name; };
  std::sort(lines.begin(), lines.end(),
            [&](const TreeLine& a, const TreeLine& b) { return key(a) < key(b); });
  std::string body;
  for (const TreeLine& line : lines) {
    body += line.folder ? "40000 " : "100644 ";
    body += line.name;
    body.push_back('\0');
    body.append(reinterpret_cast<const char*>(line.oid.bytes.data()), line.oid.bytes.size());
  }
  return git_object_id("tree", body);
}

GitOid git_commit_id(const GitOid& tree) {
  constexpr std::string_view k_who = "modeld-test-hub <hub@localhost> 1767225600 +0000";
  return git_object_id("commit", fmt::format("tree {}\nauthor {}\ncommitter {}\n\nFiles\n",
                                             tree.hex(), k_who, k_who));
}

std::string lfs_pointer(const Sha256Digest& sha256, std::size_t size) {
  return fmt::format("version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize {}\n",
                     sha256.hex(), size);
}

} // namespace modeld::test
