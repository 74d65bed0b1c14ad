// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fetch/environment.hpp"
#include "fetch/token.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace modeld::fetch {

/// A token that huggingface_hub keeps under a name (hub-protocol.md section 3). One that came from
/// a login by browser expires, and only that program renews it.
struct StoredToken {
  std::string name;
  Token token;
  std::optional<std::int64_t> expires; ///< Unix seconds
};

/// The file `stored_tokens` beside the user's token file.
std::string stored_tokens_file_of(const Environment& environment);

/// All that have a name; none where there is no file. malformed where it is not as that program
/// writes it.
Result<std::vector<StoredToken>> read_stored_tokens(const Environment& environment);

/// The one of that name; not_found tells which there are, denied when it has expired.
Result<StoredToken> find_stored_token(const Environment& environment, std::string_view name);

/// denied where a token that is known here has expired; nothing is known of most.
Result<void> check_expiry(const Environment& environment, const Token& token);

} // namespace modeld::fetch
