// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schema/result.hpp"

#include <string>

// Signatures of files, made and checked by programs that people have and trust already: OpenSSH
// (ssh-keygen -Y) and minisign. Which one is meant, the key's own first line says.

namespace modeld::daemon {

/// What an OpenSSH signature is for: one that was made for something else does not fit.
inline constexpr const char* k_signature_namespace = "modeld-bundle";

/// Signs with a private key; the name of the signature, FILE.sig or FILE.minisig. not_found where
/// the program is missing.
Result<std::string> sign_file(const std::string& file, const std::string& key);

/// Checks the signature beside a file against an allowed_signers(5) file of OpenSSH or a public key
/// of minisign; who signed. digest_mismatch where it does not fit, not_found where there is none.
Result<std::string> verify_file(const std::string& file, const std::string& trusted);

} // namespace modeld::daemon
