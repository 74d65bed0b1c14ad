// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quantize/gguf/block_layout.hpp"

#include <limits>

namespace modeld::quantize::reference {

/// The largest scale of a super-block's sub-blocks, from which its own follows. Where a scale came
/// out as no number (sums that overflowed) the reference stops; here the block gets NaN for a
/// scale, which the check of every output block reports.
class LargestScale {
public:
  void add(float scale) {
    bad_ = bad_ || !(scale >= 0);
    max_ = max_ > scale ? max_ : scale;
  }
  bool bad() const { return bad_; }
  bool zero() const { return max_ == 0 && !bad_; }
  float value() const { return bad_ ? std::numeric_limits<float>::quiet_NaN() : max_; }

private:
  float max_ = 0;
  bool bad_ = false;
};

} // namespace modeld::quantize::reference
