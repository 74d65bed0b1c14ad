// SPDX-License-Identifier: Apache-2.0
// audit as a program: good and bad checkpoints, and the GGUF files made of them.
#include "tests/e2e/private_daemon.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

using namespace modeld::test;
using Catch::Contains;
namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

constexpr const char* k_first = "model-00001-of-00002.safetensors";
constexpr const char* k_second = "model-00002-of-00002.safetensors";
constexpr const char* k_index = "model.safetensors.index.json";

Finished modelctl(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {MODELCTL_PROGRAM, "--socket", "/nonexistent/socket"});
  return run(arguments);
}

std::string read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void write(const fs::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

fs::path copy_of_tiny_verse(const TempDir& dir) {
  const fs::path to = dir / "TinyVerse-4M";
  fs::copy(tiny_verse(), to);
  for (const auto& entry : fs::directory_iterator(to))
    fs::permissions(entry.path(), fs::perms::owner_write, fs::perm_options::add);
  return to;
}

// A safetensors file as something to change.
struct Weights {
  json::object header;
  std::string data;

  explicit Weights(const fs::path& path) {
    const std::string all = read(path);
    std::uint64_t size = 0;
    std::memcpy(&size, all.data(), sizeof size);
    header = json::parse(all.substr(8, size)).as_object();
    data = all.substr(8 + size);
  }

  // Lays the tensors out anew, without those in `drop` and with those in `add`, of equal bytes.
  std::string without(const std::vector<std::string>& drop, const json::object& add = {}) const {
    json::object out;
    std::string bytes;
    const auto put = [&](std::string_view name, json::object tensor, std::string_view part) {
      tensor["data_offsets"] = json::array{bytes.size(), bytes.size() + part.size()};
      bytes += part;
      out[name] = std::move(tensor);
    };
    for (const auto& [name, value] : header) {
      const std::string text(name);
      if (text == "__metadata__") continue;
      if (std::find(drop.begin(), drop.end(), text) != drop.end()) continue;
      const auto& offsets = value.at("data_offsets").as_array();
      const auto begin = offsets[0].to_number<std::size_t>();
      const auto part =
          std::string_view(data).substr(begin, offsets[1].to_number<std::size_t>() - begin);
      put(name, value.as_object(), part);
      if (const auto* twin = add.if_contains(name))
        put(std::string_view(twin->as_string()), value.as_object(), part);
    }
    std::string text = json::serialize(out);
    text.append((8 - text.size() % 8) % 8, ' ');
    std::string all(8, '\0');
    const std::uint64_t size = text.size();
    std::memcpy(all.data(), &size, sizeof size);
    return all + text + bytes;
  }
};

// The index without some tensors, with others, and without total_size.
void change_index(const fs::path& model, const std::vector<std::string>& drop,
                  const json::object& add = {}) {
  json::object index = json::parse(read(model / k_index)).as_object();
  index.erase("metadata");
  auto& map = index.at("weight_map").as_object();
  for (const std::string& name : drop)
    map.erase(name);
  for (const auto& [name, file] : add)
    map[name] = file;
  write(model / k_index, json::serialize(index));
}

std::string first_layer_tensor(const Weights& weights, std::string_view ending) {
  for (const auto& [name, value] : weights.header)
    if (std::string_view(name).ends_with(ending)) return std::string(name);
  FAIL("no tensor " << ending);
  return {};
}

json::object audit_json(const std::vector<std::string>& arguments, int status) {
  std::vector<std::string> all{"--json", "audit"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  const Finished done = modelctl(all);
  INFO(done.out.substr(0, 4000) << done.err);
  REQUIRE(done.status == status);
  return json::parse(done.out).as_object();
}

std::uint64_t number(const json::object& object, std::string_view name) {
  return object.at(name).to_number<std::uint64_t>();
}

std::string text_of(const json::value& value) {
  return json::serialize(value);
}

fs::path convert(const TempDir& dir, const fs::path& model, const std::string& type,
                 const std::vector<std::string>& more = {}) {
  const fs::path out = dir / (type + ".gguf");
  std::vector<std::string> all{"convert", model.string(), "--outtype", type, "-o", out.string()};
  all.insert(all.end(), more.begin(), more.end());
  const Finished done = modelctl(all);
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  return out;
}

} // namespace

TEST_CASE("modelctl audit accounts for every byte and tensor of a whole snapshot", "[e2e][audit]") {
  const json::object audit = audit_json({tiny_verse().string()}, 0);
  CHECK(audit.at("balanced").as_bool());
  std::uint64_t tensors = 0;
  std::uint64_t bytes = 0;
  for (const auto& file : audit.at("files").as_array()) {
    const auto& one = file.as_object();
    CHECK(number(one, "header") + number(one, "data") == number(one, "size"));
    CHECK(number(one, "size") ==
          fs::file_size(tiny_verse() / std::string(one.at("path").as_string())));
    tensors += number(one, "tensors");
    bytes += number(one, "data");
  }
  CHECK(number(audit, "tensors") == tensors);
  CHECK(number(audit, "bytes") == bytes);
  CHECK(number(audit, "total_size") == bytes);
  const auto& outputs = audit.at("outputs").as_array();
  CHECK(number(audit, "planned") == outputs.size());
  CHECK(outputs.size() == tensors);
  bool permuted = false;
  for (const auto& output : outputs) {
    CHECK(output.at("sources").as_array().size() == 1);
    permuted |= output.at("name").as_string() == "blk.0.attn_q.weight" &&
                output.at("operations").as_string() == "rotary_halves(heads)";
  }
  CHECK(permuted);
  for (const char* list : {"contradictions", "not_used", "used_often", "left_out"})
    CHECK(audit.at(list).as_array().empty());
  const Finished text = modelctl({"audit", "--tensors", tiny_verse().string()});
  CHECK(text.status == 0);
  CHECK_THAT(text.out, Contains("every account balances") && Contains("blk.0.attn_q.weight") &&
                           Contains("<- model.layers.0."));
}

TEST_CASE("modelctl audit names a tensor that the configuration implies and nobody has",
          "[e2e][audit][RC-29]") {
  const TempDir dir;
  const fs::path model = copy_of_tiny_verse(dir);
  const Weights weights(model / k_first);
  const std::string gone = first_layer_tensor(weights, "mlp.up_proj.weight");
  write(model / k_first, weights.without({gone}));
  change_index(model, {gone});
  const json::object audit = audit_json({model.string()}, 4);
  CHECK_FALSE(audit.at("balanced").as_bool());
  CHECK_THAT(text_of(audit.at("contradictions")), Contains(gone) && Contains("RC-29"));
}

TEST_CASE("modelctl audit names a tensor that no family has", "[e2e][audit]") {
  const TempDir dir;
  const fs::path model = copy_of_tiny_verse(dir);
  const Weights weights(model / k_first);
  const std::string known = first_layer_tensor(weights, "mlp.up_proj.weight");
  write(model / k_first, weights.without({}, {{known, "model.layers.0.extra.weight"}}));
  change_index(model, {}, {{"model.layers.0.extra.weight", k_first}});
  const json::object audit = audit_json({model.string()}, 4);
  CHECK_THAT(std::string(audit.at("conversion_error").as_string()),
             Contains("model.layers.0.extra.weight"));
}

TEST_CASE("modelctl audit refuses a tensor that stands in two shards", "[e2e][audit][IX-09]") {
  const TempDir dir;
  const fs::path model = copy_of_tiny_verse(dir);
  const Weights first(model / k_first);
  const Weights second(model / k_second);
  const std::string twice = first_layer_tensor(first, "mlp.up_proj.weight");
  const std::string other = first_layer_tensor(second, "mlp.up_proj.weight");
  write(model / k_second, second.without({}, {{other, twice}}));
  const Finished done = modelctl({"audit", model.string()});
  CHECK(done.status == 4);
  CHECK_THAT(done.err, Contains(twice) && Contains("[malformed]"));
}

TEST_CASE("modelctl audit refuses two source tensors that become one", "[e2e][audit]") {
  const TempDir dir;
  const fs::path model = copy_of_tiny_verse(dir);
  const Weights weights(model / k_first);
  // "norm" is the same tensor's name in checkpoints of Meta's own form.
  const std::string embedding = first_layer_tensor(weights, "embed_tokens.weight");
  write(model / k_first, weights.without({}, {{embedding, "tok_embeddings.weight"}}));
  change_index(model, {}, {{"tok_embeddings.weight", k_first}});
  const json::object audit = audit_json({model.string()}, 4);
  CHECK_THAT(std::string(audit.at("conversion_error").as_string()),
             Contains("two source tensors become 'token_embd.weight'"));
}

TEST_CASE("modelctl audit tells tied from separate outputs", "[e2e][audit]") {
  const TempDir dir;
  const json::object before = audit_json({tiny_verse().string()}, 0);
  const fs::path model = copy_of_tiny_verse(dir);
  json::object config = json::parse(read(model / "config.json")).as_object();
  if (before.at("tied").as_bool()) {
    const Weights weights(model / k_first);
    const std::string embedding = first_layer_tensor(weights, "embed_tokens.weight");
    write(model / k_first, weights.without({}, {{embedding, "lm_head.weight"}}));
    change_index(model, {}, {{"lm_head.weight", k_first}});
    config["tie_word_embeddings"] = false;
  } else {
    for (const char* file : {k_first, k_second})
      write(model / file, Weights(model / file).without({"lm_head.weight"}));
    change_index(model, {"lm_head.weight"});
    config["tie_word_embeddings"] = true;
  }
  write(model / "config.json", json::serialize(config));
  const json::object after = audit_json({model.string()}, 0);
  CHECK(after.at("tied").as_bool() != before.at("tied").as_bool());
}

TEST_CASE("modelctl audit proves every value of F32, F16 and BF16 conversions", "[e2e][audit]") {
  const TempDir dir;
  for (const char* type : {"f32", "f16", "bf16"}) {
    INFO(type);
    const fs::path gguf = convert(dir, tiny_verse(), type);
    const json::object audit = audit_json({tiny_verse().string(), "--gguf", gguf.string()}, 0);
    const auto& output = audit.at("gguf").as_object();
    CHECK(number(output, "compared") == number(output, "tensors"));
    for (const auto& made : audit.at("outputs").as_array())
      CHECK(made.at("sha256").as_string().size() == 64);
  }
}

TEST_CASE("modelctl audit finds one value that is another one, and says which", "[e2e][audit]") {
  const TempDir dir;
  for (const char* type : {"f32", "f16", "bf16"}) {
    INFO(type);
    const fs::path gguf = convert(dir, tiny_verse(), type);
    std::string bytes = read(gguf);
    bytes[bytes.size() - 64] = static_cast<char>(bytes[bytes.size() - 64] ^ 1);
    write(gguf, bytes);
    const json::object audit = audit_json({tiny_verse().string(), "--gguf", gguf.string()}, 4);
    const auto& wrong = audit.at("gguf").at("other_values").as_array();
    REQUIRE(wrong.size() == 1);
    CHECK_THAT(std::string(wrong[0].as_string()), Contains("first at element"));
  }
}

TEST_CASE("modelctl audit compares what a quantized file keeps plain", "[e2e][audit]") {
  const TempDir dir;
  const fs::path gguf = convert(dir, tiny_verse(), "q8_0");
  const json::object audit = audit_json({tiny_verse().string(), "--gguf", gguf.string()}, 0);
  const auto& output = audit.at("gguf").as_object();
  CHECK(number(output, "compared") > 0);
  CHECK(number(output, "compared") < number(output, "tensors"));
}

TEST_CASE("modelctl audit reads all parts of a split, and names what is missing or more",
          "[e2e][audit]") {
  const TempDir dir;
  const fs::path whole = convert(dir, tiny_verse(), "f16", {"--split-max-tensors", "20"});
  fs::path first;
  for (const auto& entry : fs::directory_iterator(dir.path()))
    if (entry.path().filename().string().find("-00001-of-") != std::string::npos)
      first = entry.path();
  REQUIRE_FALSE(first.empty());
  const json::object audit = audit_json({tiny_verse().string(), "--gguf", first.string()}, 0);
  CHECK(audit.at("gguf").at("files").as_array().size() > 1);

  // The checkpoint has a layer less than the file.
  const fs::path model = copy_of_tiny_verse(dir);
  json::object config = json::parse(read(model / "config.json")).as_object();
  const auto layers = config.at("num_hidden_layers").to_number<std::int64_t>();
  config["num_hidden_layers"] = layers - 1;
  const std::string last = "model.layers." + std::to_string(layers - 1) + ".";
  std::vector<std::string> drop;
  for (const char* file : {k_first, k_second})
    for (const auto& [name, value] : Weights(model / file).header)
      if (std::string_view(name).starts_with(last)) drop.emplace_back(name);
  for (const char* file : {k_first, k_second})
    write(model / file, Weights(model / file).without(drop));
  change_index(model, drop);
  write(model / "config.json", json::serialize(config));
  const json::object less = audit_json({model.string(), "--gguf", first.string()}, 4);
  CHECK(less.at("gguf").at("extra").as_array().size() == drop.size());
  const fs::path shorter = convert(dir, model, "f32");
  const json::object more = audit_json({tiny_verse().string(), "--gguf", shorter.string()}, 4);
  CHECK(more.at("gguf").at("missing").as_array().size() == drop.size());
}

TEST_CASE("modelctl audit notices sources that change while they are read (GN-07)",
          "[e2e][audit][GN-07]") {
  const TempDir dir;
  const fs::path model = copy_of_tiny_verse(dir);
  const fs::path gguf = convert(dir, tiny_verse(), "f32");
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    while (!stop) {
      fs::last_write_time(model / "config.json", fs::file_time_type::clock::now());
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  const Finished done = modelctl({"audit", model.string(), "--gguf", gguf.string()});
  stop = true;
  writer.join();
  CHECK(done.status == 4);
  CHECK_THAT(done.err, Contains("config.json") && Contains("changed") && Contains("[corrupt]"));
}

TEST_CASE("modelctl audit tells its errors by exit status", "[e2e][audit]") {
  const TempDir dir;
  CHECK(modelctl({"audit"}).status == 2);
  CHECK(modelctl({"audit", "--gguf"}).status == 2);
  const Finished missing = modelctl({"audit", (dir / "nothing").string()});
  CHECK(missing.status == 3);
  CHECK_THAT(missing.err, Contains("[not_found]"));
  const Finished output =
      modelctl({"audit", tiny_verse().string(), "--gguf", (dir / "nothing.gguf").string()});
  CHECK(output.status == 3);
  const Finished file = modelctl({"audit", (tiny_verse() / "config.json").string()});
  CHECK(file.status == 2);
  const fs::path model = copy_of_tiny_verse(dir);
  fs::resize_file(model / k_second, fs::file_size(model / k_second) - 1);
  const Finished cut = modelctl({"audit", model.string()});
  CHECK(cut.status == 4);
  CHECK_THAT(cut.err, Contains(k_second) && Contains("[malformed]"));
  write(dir / "evil\x1b[31m.gguf", "GGUF");
  const Finished evil =
      modelctl({"audit", tiny_verse().string(), "--gguf", (dir / "evil\x1b[31m.gguf").string()});
  CHECK(evil.status == 4);
  CHECK(evil.err.find('\x1b') == std::string::npos);
}
