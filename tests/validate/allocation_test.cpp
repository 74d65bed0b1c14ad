// SPDX-License-Identifier: Apache-2.0
// Memory while parsing is at most a constant times the bytes read, whatever a file claims.
// A program of its own: it replaces the allocator, which sanitizers want for themselves.
#include "gguf_builder.hpp"
#include "hf_repository.hpp"
#include "tests/support/counting_memory.hpp"
#include "tests/support/memory_files.hpp"
#include "validate/check.hpp"
#include "validate/repository.hpp"
#include "validate/shard_index.hpp"

#include <catch2/catch.hpp>

#include <functional>
#include <string>

using namespace modeld;
using namespace modeld::test;
using namespace modeld::validate;

namespace {

/// A thousand findings have room in this, whatever the file's size.
constexpr std::size_t k_findings = std::size_t{2} << 20;
/// Per byte: a value of JSON takes two bytes of text and 56 of memory, a token of a template one
/// and 40, and a list that grows has two copies for a moment.
constexpr std::size_t k_factor = 100;

void expect_bounded(std::string_view what, std::size_t bytes, const std::function<void()>& work) {
  const std::size_t used = peak_memory(work);
  INFO(what << ": " << used << " bytes of memory for a file of " << bytes);
  CHECK(used <= k_factor * bytes + k_findings);
}

void expect_gguf(std::string_view what, const std::string& file) {
  expect_bounded(what, file.size(), [&] { check_gguf_file(bytes_of(file), "m.gguf"); });
}

void expect_safetensors(std::string_view what, const std::string& file) {
  expect_bounded(what, file.size(),
                 [&] { check_safetensors_file(bytes_of(file), "m.safetensors"); });
}

} // namespace

TEST_CASE("check_gguf allocates by the bytes that are there, not by the numbers in them (D04)",
          "[validate][gguf][allocation][D04][GG-T11]") {
  const GgufWriter w;
  for (const std::uint64_t count : {std::uint64_t{500'000'000}, std::uint64_t{1} << 40,
                                    std::uint64_t{1} << 55, ~std::uint64_t{0}}) {
    Gguf file;
    file.nk = count;
    expect_gguf("keys", file.str());
    file.nk.reset();
    file.nt = count;
    expect_gguf("tensors", file.str());
    for (const std::int64_t type : {0, 8, 10}) {
      Gguf array = good();
      array.kvs.push_back(w.kv("a.b", 9, w.arr(type, count, zeros(64))));
      expect_gguf("array", array.str());
    }
    Gguf key = good();
    key.kvs.push_back(w.u64(count) + "k");
    expect_gguf("key", key.str());
  }
  Gguf many; // the smallest keys and tensors that there can be, 50,000 of each
  for (int i = 0; i < 50'000; ++i) {
    many.kvs.push_back(w.kv(std::to_string(i), 0, "x"));
    many.tis.push_back(w.ti("", {}, 0, 0));
  }
  expect_gguf("many", many.str());
}

TEST_CASE("check_safetensors allocates by the bytes that are there (D11)",
          "[validate][safetensors][allocation][D11]") {
  expect_safetensors("length", le(std::uint64_t{99'999'999}) + "{}");
  std::string header = "{";
  for (int i = 0; i < 50'000; ++i)
    header += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":1";
  expect_safetensors("no entries", st(header + "}", ""));
  header = "{";
  for (int i = 0; i < 50'000; ++i)
    header += (i > 0 ? "," : "") + entry(std::to_string(i), "U8", "[0]", "0", "0");
  expect_safetensors("entries", st(header + "}", ""));
  std::string dims = "0";
  for (int i = 0; i < 100'000; ++i)
    dims += ",0";
  expect_safetensors("dimensions", st(object({entry("a", "U8", "[" + dims + "]", "0", "0")}), ""));
  expect_safetensors("depth", st("{\"a\":" + std::string(200'000, '['), ""));
  std::string keys = "{\"a\":{";
  for (int i = 0; i < 50'000; ++i)
    keys += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":0";
  expect_safetensors("members", st(keys + "}}", ""));
}

TEST_CASE("check_repository allocates by the bytes that are there", "[validate][allocation]") {
  const auto expect_file = [](const std::string& name, const std::string& text) {
    Files files = HfRepository().files();
    files[name] = text;
    std::size_t bytes = 0;
    for (const auto& [path, content] : files)
      bytes += content.size();
    const MemoryFiles set("repo", files);
    expect_bounded(name, bytes, [&] { check_repository(set, CheckOptions{}); });
  };
  std::string list = "[0";
  for (int i = 0; i < 200'000; ++i)
    list += ",0";
  list += "]";
  for (const char* name : {"config.json", "generation_config.json", "tokenizer_config.json"})
    expect_file(name, "{\"a\":" + list + "}");
  expect_file("tokenizer.json",
              "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":2147483647},\"merges\":" + list +
                  "}}");
  expect_file("config.json", "{\"num_hidden_layers\":2147483647,\"num_experts\":2147483647}");
  expect_file("model.safetensors.index.json", "{\"weight_map\":" + list + "}");
  expect_file("chat_template.jinja", std::string(100'000, '{'));
}
