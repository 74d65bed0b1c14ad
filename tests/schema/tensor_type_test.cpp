// SPDX-License-Identifier: Apache-2.0
#include "schema/tensor_type.hpp"

#include <catch2/catch.hpp>

using namespace modeld;

TEST_CASE("find_tensor_type knows no removed and no reused id", "[schema][tensor_type][GG-36]") {
  for (const std::uint32_t id : {4U, 5U, 31U, 32U, 33U, 36U, 37U, 38U, 43U, 156U, 0xFFFFFFFFU}) {
    CHECK(find_tensor_type(id) == nullptr);
  }
  for (const TensorTypeInfo& row : all_tensor_types()) {
    CHECK(find_tensor_type(static_cast<std::uint32_t>(row.type)) == &row);
    CHECK(tensor_type_from_name(row.name) == row.type);
  }
}

TEST_CASE("tensor_bytes refuses broken blocks and overflow",
          "[schema][tensor_type][GG-37][GG-38]") {
  CHECK(tensor_bytes(TensorType::q4_k, 512) == 288U);
  CHECK_FALSE(tensor_bytes(TensorType::q4_k, 255));
  CHECK_FALSE(tensor_bytes(TensorType::f64, 1ULL << 62));
  CHECK(tensor_bytes(TensorType::f32, 0) == 0U);
}
