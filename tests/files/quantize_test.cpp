// SPDX-License-Identifier: Apache-2.0
#include "tests/files/command.hpp"
#include "tests/files/model_inputs.hpp"
#include "tests/support/memory_files.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <unistd.h>

using namespace modeld;
using namespace modeld::test;
using Catch::Contains;
namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

using Names = std::set<std::string>;

/// Type of a tensor in a dry run or a result.
std::string type_of(const json::object& plan, std::string_view tensor,
                    std::string_view which = "to") {
  for (const json::value& row : plan.at("tensors").as_array()) {
    if (row.at("name").as_string() == tensor) return std::string(row.at(which).as_string());
  }
  return {};
}

/// The keys of a file's metadata.
Names keys_of(const fs::path& path) {
  Names names;
  for (const auto& kv : read_model(path).kv) {
    names.insert(kv.key);
  }
  return names;
}

/// No finding about data; so small a model lacks keys that other rules ask for.
bool has_sound_data(const Workplace& place, const std::string& name) {
  const auto checked = place.ctl({"--json", "check", "--data", name});
  return checked.out.find(name) != std::string::npos &&
         checked.out.find("BD-0") == std::string::npos;
}

/// Has written to a file in this folder that has no name there, or a hidden one.
bool writes_in(pid_t pid, const fs::path& folder) {
  std::error_code ec;
  const fs::path fds = "/proc/" + std::to_string(pid) + "/fd";
  for (fs::directory_iterator at(fds, ec), end; !ec && at != end; at.increment(ec)) {
    const fs::path target = fs::read_symlink(at->path(), ec);
    if (target.string().starts_with(folder.string() + "/") &&
        target.filename().string().find("in.gguf") == std::string::npos) {
      return true;
    }
  }
  return false;
}

} // namespace

TEST_CASE("modelctl quantize makes the reference's files", "[files][quantize]") {
  const Workplace place;
  put_tiny_verse(place);
  for (const char* type : {"Q4_K_M", "Q8_0", "IQ4_XS"}) {
    const auto done = place.ctl({"quantize", "in.gguf", "out.gguf", type, "2"});
    INFO(done.err);
    CHECK(done.status == 0);
    CHECK(done.out == "out.gguf\n");
    CHECK(place.sha256("out.gguf") == tiny_verse_sha256(type));
  }
  CHECK(place.names() == Names{"in.gguf", "out.gguf"});
}

TEST_CASE("modelctl quantize takes options before, between and behind the files",
          "[files][quantize]") {
  const Workplace place;
  write_model(small_llama(), place / "in.gguf");
  const std::vector<std::string> rules{"--tensor-type", "attn_q=q8_0",   "--tensor-type",
                                       "attn_k=q5_1",   "--override-kv", "general.name=str:N"};
  std::vector<std::string> before{"quantize"};
  before.insert(before.end(), rules.begin(), rules.end());
  before.insert(before.end(), {"in.gguf", "a.gguf", "Q4_0"});
  std::vector<std::string> behind{"quantize", "in.gguf", "b.gguf", "Q4_0"};
  behind.insert(behind.end(), rules.begin(), rules.end());
  CHECK(place.ctl(before).status == 0);
  CHECK(place.ctl(behind).status == 0);
  CHECK(place.sha256("a.gguf") == place.sha256("b.gguf"));
}

TEST_CASE("modelctl quantize --json tells every tensor's type, and --dry-run writes nothing",
          "[files][quantize]") {
  const Workplace place;
  write_model(small_llama(), place / "in.gguf");
  const auto plan = place.ctl_json({"quantize", "--dry-run", "in.gguf", "out.gguf", "IQ2_XS"});
  CHECK(place.names() == Names{"in.gguf"});
  CHECK(type_of(plan, "blk.0.attn_q.weight") == "IQ2_XS");
  const auto done = place.ctl_json({"quantize", "in.gguf", "out.gguf", "Q4_K_M"});
  CHECK(type_of(done, "blk.0.attn_q.weight") == "Q4_K");
  CHECK(done.at("files").as_array().at(0).as_string() == "out.gguf");
}

TEST_CASE("modelctl quantize substitutes types for rows of 288, 172 and 1, and says so (B01)",
          "[files][quantize][B01]") {
  struct Row {
    std::uint64_t width;
    const char* target;
    const char* type;
  };
  for (const Row& row :
       {Row{288, "Q4_K_S", "Q5_0"}, Row{172, "Q4_K_S", "F16"}, Row{1, "Q4_K_S", "F16"},
        Row{288, "Q6_K", "Q8_0"}, Row{172, "Q6_K", "F16"}, Row{1, "Q6_K", "F16"},
        Row{288, "IQ3_S", "IQ4_NL"}, Row{172, "IQ3_S", "F16"}, Row{1, "IQ3_S", "F16"}}) {
    INFO(row.target << " for rows of " << row.width);
    const Workplace place;
    write_model(small_llama(row.width), place / "in.gguf");
    const auto done = place.ctl({"quantize", "in.gguf", "out.gguf", row.target});
    CHECK(done.status == 0);
    CHECK_THAT(done.err, Contains("'blk.0.attn_q.weight' becomes " + std::string(row.type)));
    const auto model = read_model(place / "out.gguf");
    const auto at = std::find_if(model.tensors.begin(), model.tensors.end(),
                                 [](const auto& t) { return t.name == "blk.0.attn_q.weight"; });
    REQUIRE(at != model.tensors.end());
    CHECK(info(at->type).name == row.type);
  }
}

TEST_CASE("modelctl quantize checks rules for tensors before it writes (B02)",
          "[files][quantize][B02]") {
  const Workplace place;
  write_model(small_llama(288), place / "in.gguf");
  const auto substituted =
      place.ctl({"quantize", "--tensor-type", "attn=q4_k", "in.gguf", "out.gguf", "Q8_0"});
  CHECK(substituted.status == 0);
  CHECK_THAT(substituted.err, Contains("'blk.0.attn_q.weight' becomes Q5_0 instead of Q4_K"));
  for (const std::string rule : {"attention=q4_k", "attn=q9", "attn", "=q4_k", "attn=", "(=q8_0"}) {
    INFO(rule);
    const auto refused =
        place.ctl({"quantize", "--tensor-type", rule, "in.gguf", "no.gguf", "Q8_0"});
    CHECK(refused.status == 2);
    CHECK(error_code(refused) == "invalid_argument");
  }
  CHECK(place.names() == Names{"in.gguf", "out.gguf"});
}

TEST_CASE("modelctl quantize gives an expert without data neutral weights, and warns (B03)",
          "[files][quantize][B03]") {
  const Workplace place;
  const auto model = small_llama(256, 1, 4);
  write_model(model, place / "in.gguf");
  write_matrix(model, {.unused_expert = true}, place / "m.gguf");
  const auto done = place.ctl({"quantize", "--imatrix", "m.gguf", "in.gguf", "out.gguf", "IQ2_XS"});
  INFO(done.err);
  CHECK(done.status == 0);
  CHECK_THAT(done.err, Contains("1 of 4 experts of 'blk.0.ffn_down_exps.weight'"));
  CHECK(has_sound_data(place, "out.gguf"));
}

TEST_CASE("modelctl quantize lists every tensor without the importance data it needs (B03)",
          "[files][quantize][B03]") {
  const Workplace place;
  const auto model = small_llama(256, 2, 4);
  write_model(model, place / "in.gguf");
  write_matrix(model, {.leave_out = "ffn_up"}, place / "m.dat");
  const auto refused =
      place.ctl({"quantize", "--imatrix", "m.dat", "in.gguf", "out.gguf", "IQ2_XS"});
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, Contains("'blk.0.ffn_up_exps.weight'") &&
                              Contains("'blk.1.ffn_up_exps.weight'") && Contains("--imatrix"));
  CHECK(place.names() == Names{"in.gguf", "m.dat"});
}

TEST_CASE("modelctl quantize refuses importance data that is no number (B04)",
          "[files][quantize][B04]") {
  const Workplace place;
  const auto model = small_llama();
  write_model(model, place / "in.gguf");
  for (const std::string bad : {"nan", "inf", "negative"}) {
    for (const std::string file : {"m.gguf", "m.dat"}) {
      INFO(bad << " in " << file);
      write_matrix(model, {.bad = bad}, place / file);
      const auto refused =
          place.ctl({"quantize", "--imatrix", file, "in.gguf", "out.gguf", "Q4_K_M"});
      CHECK(refused.status == 4);
      CHECK(error_code(refused) == "malformed");
      CHECK_THAT(refused.err, Contains(file) && Contains("blk.0.ffn_down.weight"));
      fs::remove(place / file);
    }
  }
  CHECK(place.names() == Names{"in.gguf"});
}

TEST_CASE("modelctl quantize makes sound blocks where importance weights are zero (B04)",
          "[files][quantize][B04]") {
  const Workplace place;
  const auto model = small_llama(1024);
  write_model(model, place / "in.gguf");
  std::ofstream matrix(place / "m.dat", std::ios::binary);
  const auto number = [&matrix](std::int32_t n) {
    matrix.write(reinterpret_cast<const char*>(&n), sizeof n);
  };
  const std::string name = "blk.0.ffn_down.weight";
  number(1);
  number(static_cast<std::int32_t>(name.size()));
  matrix << name;
  number(1);
  number(1024);
  matrix << std::string(1024 * sizeof(float), '\0');
  matrix.close();
  for (const std::string type : {"Q2_K", "Q4_K_S", "Q5_K_S", "IQ4_NL"}) {
    INFO(type);
    const auto done = place.ctl({"quantize", "--imatrix", "m.dat", "in.gguf", "out.gguf", type});
    CHECK(done.status == 0);
    CHECK_THAT(done.err, Contains("no weight above zero"));
    CHECK(has_sound_data(place, "out.gguf"));
  }
}

TEST_CASE("modelctl quantize compares importance data with the tensors before it writes (B05)",
          "[files][quantize][B05]") {
  const Workplace place;
  const auto model = small_llama();
  write_model(model, place / "in.gguf");
  write_matrix(model, {.bad = "long"}, place / "long.gguf");
  const auto refused =
      place.ctl({"quantize", "--imatrix", "long.gguf", "in.gguf", "out.gguf", "Q4_K_M"});
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, Contains("512 weights for 1 x 256 columns"));
  const auto left_out = place.ctl({"quantize", "--imatrix", "long.gguf", "--exclude-weights",
                                   "blk.0.ffn_down", "in.gguf", "out.gguf", "Q4_K_M"});
  CHECK(left_out.status == 0);
  fs::remove(place / "out.gguf");

  write_matrix(small_llama(256, 3), {}, place / "other.gguf"); // of a model of other layers
  const auto warned =
      place.ctl({"quantize", "--imatrix", "other.gguf", "in.gguf", "out.gguf", "Q4_K_M"});
  CHECK(warned.status == 0);
  CHECK_THAT(warned.err, Contains("entries name no tensor of this model"));
}

TEST_CASE("modelctl quantize leaves its input alone, whatever name the output has (B06)",
          "[files][quantize][B06]") {
  const Workplace place;
  write_model(small_llama(), place / "in.gguf");
  const std::string before = place.sha256("in.gguf");
  fs::create_symlink("in.gguf", place / "soft.gguf");
  fs::create_hard_link(place / "in.gguf", place / "hard.gguf");
  fs::create_directory(place / "folder");
  const Names all = place.names();
  for (const std::string out :
       {"in.gguf", "./in.gguf", "folder/../in.gguf", "soft.gguf", "hard.gguf"}) {
    INFO(out);
    const auto refused = place.ctl({"quantize", "in.gguf", out, "Q8_0"});
    CHECK(refused.status == 1);
    CHECK(error_code(refused) == "conflict");
    CHECK_THAT(refused.err, Contains("it is the input file"));
    const auto through = place.ctl({"quantize", "soft.gguf", out, "Q8_0"});
    CHECK(error_code(through) == "conflict");
  }
  CHECK(place.sha256("in.gguf") == before);
  CHECK(place.names() == all);
}

TEST_CASE("modelctl quantize refuses an output that is a part of its input (B06)",
          "[files][quantize][B06]") {
  const Workplace place;
  write_model(small_llama(), place / "in.gguf");
  REQUIRE(place.ctl({"split", "--split-max-tensors", "4", "in.gguf", "x"}).status == 0);
  const std::string before = place.sha256("x-00002-of-00003.gguf");
  const auto refused =
      place.ctl({"quantize", "x-00001-of-00003.gguf", "x-00002-of-00003.gguf", "Q8_0"});
  CHECK(error_code(refused) == "conflict");
  const auto kept = place.ctl({"quantize", "--keep-split", "x-00001-of-00003.gguf", "x", "Q8_0"});
  CHECK(error_code(kept) == "conflict");
  CHECK(place.sha256("x-00002-of-00003.gguf") == before);
}

TEST_CASE("modelctl quantize replaces a file of the output's name as a whole",
          "[files][quantize]") {
  const Workplace place;
  write_model(small_llama(), place / "in.gguf");
  std::ofstream(place / "out.gguf") << "something else";
  const auto refused = place.ctl({"quantize", "in.gguf", "out.gguf", "IQ2_XS"});
  CHECK(refused.status == 2);
  CHECK(read_file(place / "out.gguf") == "something else");
  CHECK(place.ctl({"quantize", "in.gguf", "out.gguf", "Q8_0"}).status == 0);
  CHECK(read_file(place / "out.gguf").starts_with("GGUF"));
  CHECK(place.names() == Names{"in.gguf", "out.gguf"});
}

TEST_CASE("modelctl quantize names what is wrong with the output's place (B07)",
          "[files][quantize][B07]") {
  const Workplace place;
  write_model(small_llama(), place / "in.gguf");
  fs::create_directory(place / "folder");
  const auto missing = place.ctl({"quantize", "in.gguf", "missing/out.gguf", "Q8_0"});
  CHECK(missing.status == 3);
  CHECK_THAT(missing.err, Contains("there is no folder 'missing'"));
  const auto below_file = place.ctl({"quantize", "in.gguf", "in.gguf/out.gguf", "Q8_0"});
  CHECK(below_file.status == 3);
  const auto folder = place.ctl({"quantize", "in.gguf", "folder", "Q8_0"});
  CHECK(folder.status == 2);
  CHECK_THAT(folder.err, Contains("it is a folder"));
  const auto device = place.ctl({"quantize", "in.gguf", "/dev/full", "Q8_0"});
  CHECK(device.status == 2);
  CHECK(fs::is_character_file("/dev/full"));
  CHECK(place.names() == Names{"in.gguf", "folder"});
}

TEST_CASE("modelctl quantize says that it may not write (B07)", "[files][quantize][B07]") {
  const Workplace place;
  write_model(small_llama(), place / "in.gguf");
  const fs::path closed = place / "closed";
  fs::create_directory(closed);
  fs::permissions(closed, fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read |
                              fs::perms::others_exec);
  fs::permissions(place.path(), fs::perms::all);
  Workplace::Wrapper nobody; // root may write everywhere
  if (getuid() == 0) nobody = {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"};
  const auto refused = place.ctl({"quantize", "in.gguf", "closed/out.gguf", "Q8_0"}, nobody);
  CHECK(refused.status == 5);
  CHECK(error_code(refused) == "denied");
  CHECK_THAT(refused.err, Contains("closed/out.gguf"));
  CHECK(fs::is_empty(closed));
}

TEST_CASE("modelctl quantize leaves nothing where writing fails half-way (B07)",
          "[files][quantize][B07]") {
  const Workplace place;
  put_tiny_verse(place);
  const auto refused =
      place.ctl({"quantize", "in.gguf", "out.gguf", "Q8_0"}, {"prlimit", "--fsize=1000000"});
  CHECK(refused.status == 6);
  CHECK(error_code(refused) == "no_space");
  CHECK(place.names() == Names{"in.gguf"});
}

TEST_CASE("modelctl quantize refuses beforehand what will not fit, with the numbers (B07)",
          "[files][quantize][B07]") {
  const Workplace place;
  put_tiny_verse(place);
  fs::create_directory(place / "small");
  const std::string script = "mount -t tmpfs -o size=1m none small || exit 99; \"$@\"; status=$?; "
                             "[ -z \"$(ls -A small)\" ] || exit 98; exit $status";
  const auto refused = place.ctl({"quantize", "in.gguf", "small/out.gguf", "Q8_0"},
                                 {"unshare", "-rm", "sh", "-c", script, "sh"});
  if (refused.status == 99 || refused.err.find("unshare:") != std::string::npos) {
    WARN("no file system can be mounted here");
    return;
  }
  CHECK(refused.status == 6);
  CHECK_THAT(refused.err, Contains("bytes") && Contains("are free") && Contains("[no_space]"));
}

TEST_CASE("modelctl quantize leaves nothing behind when it is ended (B07)",
          "[files][quantize][B07]") {
  const Workplace place;
  put_tiny_verse(place);
  for (const int signal : {SIGINT, SIGTERM, SIGKILL}) {
    INFO("signal " << signal);
    Process work = place.start({"quantize", "-j", "1", "in.gguf", "out.gguf", "IQ3_S"},
                               {{"MODELD_KERNEL", "scalar"}}); // slow enough to be met at work
    REQUIRE(wait_until([&] { return !work.running() || writes_in(work.pid(), place.path()); }));
    work.signal(signal);
    const auto ended = work.wait(std::chrono::seconds(20));
    REQUIRE(ended);
    CHECK(ended->status == (signal == SIGKILL ? 128 + SIGKILL : 130));
    if (signal != SIGKILL) CHECK(error_code(*ended) == "cancelled");
    CHECK(place.names() == Names{"in.gguf"});
  }
  CHECK(place.ctl({"quantize", "in.gguf", "out.gguf", "IQ4_NL"}).status == 0);
  CHECK(place.sha256("out.gguf") == tiny_verse_sha256("IQ4_NL"));
}

TEST_CASE("modelctl quantize makes one whole file of three parts (B08)", "[files][quantize][B08]") {
  const Workplace place;
  put_tiny_verse(place);
  const std::size_t tensors = read_model(place / "in.gguf").tensors.size();
  const std::string limit = std::to_string((tensors + 2) / 3);
  REQUIRE(place.ctl({"split", "--split-max-tensors", limit, "in.gguf", "x"}).status == 0);
  const auto done = place.ctl({"quantize", "x-00001-of-00003.gguf", "out.gguf", "Q4_0"});
  INFO(done.err);
  CHECK(done.status == 0);
  CHECK(place.sha256("out.gguf") == tiny_verse_sha256("Q4_0"));
  CHECK(read_model(place / "out.gguf").tensors.size() == tensors);
  const Names keys = keys_of(place / "out.gguf");
  CHECK(std::none_of(keys.begin(), keys.end(),
                     [](const std::string& key) { return key.starts_with("split."); }));
}

TEST_CASE("modelctl quantize names a part that is missing, and refuses a start in the middle (B08)",
          "[files][quantize][B08]") {
  const Workplace place;
  write_model(small_llama(), place / "in.gguf");
  REQUIRE(place.ctl({"split", "--split-max-tensors", "4", "in.gguf", "x"}).status == 0);
  const auto middle = place.ctl({"quantize", "x-00002-of-00003.gguf", "out.gguf", "Q4_0"});
  CHECK(middle.status == 4);
  CHECK_THAT(middle.err, Contains("first part"));
  fs::remove(place / "x-00003-of-00003.gguf");
  const auto missing = place.ctl({"quantize", "x-00001-of-00003.gguf", "out.gguf", "Q4_0"});
  CHECK(missing.status == 3);
  CHECK_THAT(missing.err, Contains("x-00003-of-00003.gguf"));
  CHECK_FALSE(fs::exists(place / "out.gguf"));
}

TEST_CASE("modelctl quantize refuses what is quantized, and copies what has its type (B09)",
          "[files][quantize][B09]") {
  const Workplace place;
  write_model(small_llama(), place / "in.gguf");
  REQUIRE(place.ctl({"quantize", "in.gguf", "q8.gguf", "Q8_0"}).status == 0);
  const auto refused = place.ctl({"quantize", "q8.gguf", "out.gguf", "Q4_K_M"});
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, Contains("Q8_0") && Contains("--allow-requantize"));
  CHECK_FALSE(fs::exists(place / "out.gguf"));
  const auto allowed =
      place.ctl_json({"quantize", "--allow-requantize", "q8.gguf", "out.gguf", "Q4_K_M"});
  CHECK(type_of(allowed, "blk.0.attn_q.weight", "from") == "Q8_0");
  CHECK(type_of(allowed, "blk.0.attn_q.weight") == "Q4_K");
  CHECK(place.ctl({"quantize", "q8.gguf", "same.gguf", "Q8_0"}).status == 0);
  CHECK(place.sha256("same.gguf") == place.sha256("q8.gguf"));
}

TEST_CASE("modelctl quantize lets a tied embedding follow the output's rules (B10)",
          "[files][quantize][B10]") {
  const Workplace place;
  auto model = small_llama();
  std::erase_if(model.tensors, [](const auto& t) { return t.name == "output.weight"; });
  write_model(model, place / "in.gguf");
  const auto chosen = place.ctl_json({"quantize", "in.gguf", "out.gguf", "Q4_K_M"});
  CHECK(type_of(chosen, "token_embd.weight") == "Q6_K");
  const auto by_output =
      place.ctl_json({"quantize", "--output-tensor-type", "q8_0", "in.gguf", "out.gguf", "Q4_K_M"});
  CHECK(type_of(by_output, "token_embd.weight") == "Q8_0");
  const auto refused =
      place.ctl({"quantize", "--output-tensor-type", "Q8_0", "--token-embedding-type", "q3_k",
                 "in.gguf", "no.gguf", "Q4_K_M"});
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, Contains("Q8_0") && Contains("Q3_K") && Contains("token_embd.weight"));
  CHECK_FALSE(fs::exists(place / "no.gguf"));
}

TEST_CASE("modelctl quantize refuses wrong words with status 2", "[files][quantize]") {
  const Workplace place;
  write_model(small_llama(), place / "in.gguf");
  using Words = std::vector<std::string>;
  for (const Words& words :
       {Words{"in.gguf", "out.gguf", "Q9_X"}, Words{"in.gguf", "Q9_X"}, Words{"in.gguf"},
        Words{"in.gguf", "out.gguf", "Q8_0", "many"},
        Words{"in.gguf", "out.gguf", "Q8_0", "1", "2"},
        Words{"--output-tensor-type", "q9", "in.gguf", "out.gguf", "Q8_0"},
        Words{"--override-kv", "a=int:b", "in.gguf", "out.gguf", "Q8_0"},
        Words{"--override-kv", "split.count=int:2", "in.gguf", "out.gguf", "Q8_0"},
        Words{"--prune-layers", "x", "in.gguf", "out.gguf", "Q8_0"},
        Words{"--max-buffer-size", "0", "in.gguf", "out.gguf", "Q8_0"},
        Words{"--include-weights", "a", "--exclude-weights", "b", "in.gguf", "out.gguf", "Q8_0"},
        Words{"--no-such-option", "in.gguf", "out.gguf", "Q8_0"}}) {
    Words all{"quantize"};
    all.insert(all.end(), words.begin(), words.end());
    const auto refused = place.ctl(all);
    INFO(refused.err);
    CHECK(refused.status == 2);
    CHECK(error_code(refused) == "invalid_argument");
    CHECK(refused.out.empty());
  }
  CHECK(place.names() == Names{"in.gguf"});
}

TEST_CASE("modelctl quantize says what is wrong with a broken input", "[files][quantize]") {
  const Workplace place;
  write_model(small_llama(), place / "in.gguf");
  const std::string whole = read_file(place / "in.gguf");
  const auto refused = [&place](const std::string& text, int status) {
    std::ofstream(place / "bad.gguf", std::ios::binary) << text;
    const auto finished = place.ctl({"quantize", "bad.gguf", "out.gguf", "Q8_0"});
    INFO(finished.err);
    CHECK(finished.status == status);
    CHECK_THAT(finished.err, Contains("bad.gguf"));
    CHECK_FALSE(fs::exists(place / "out.gguf"));
  };
  refused("", 4);
  refused("GGUF", 4);
  refused("GGML" + whole.substr(4), 4);
  refused(whole.substr(0, 300), 4);
  refused(whole.substr(0, whole.size() - 32), 4);
  CHECK(place.ctl({"quantize", "missing.gguf", "out.gguf", "Q8_0"}).status == 3);
  CHECK(place.ctl({"quantize", "--imatrix", "missing", "in.gguf", "out.gguf", "Q8_0"}).status == 3);
  std::ofstream(place / "no.dat") << "no matrix at all";
  const auto matrix = place.ctl({"quantize", "--imatrix", "no.dat", "in.gguf", "out.gguf", "Q8_0"});
  CHECK(matrix.status == 4);
  CHECK_THAT(matrix.err, Contains("no.dat"));
  CHECK_FALSE(fs::exists(place / "out.gguf"));
}

TEST_CASE("modelctl quantize names tensor and row of a weight that is no number",
          "[files][quantize]") {
  const Workplace place;
  write_model(small_llama(), place / "in.gguf");
  std::string text = read_file(place / "in.gguf");
  constexpr std::size_t k_row = 256 * sizeof(float);
  // The last tensor is ffn_down: its third row from the end becomes NaN all over.
  std::fill_n(text.end() - 3 * k_row, k_row, '\xFF');
  std::ofstream(place / "nan.gguf", std::ios::binary) << text;
  for (const std::string type : {"Q4_K_M", "Q8_0", "F16", "COPY"}) {
    const auto refused = place.ctl({"quantize", "nan.gguf", "out.gguf", type});
    INFO(refused.err);
    CHECK(refused.status == 4);
    CHECK_THAT(refused.err, Contains("blk.0.ffn_down.weight") && Contains("row 5"));
    CHECK_FALSE(fs::exists(place / "out.gguf"));
  }
}
