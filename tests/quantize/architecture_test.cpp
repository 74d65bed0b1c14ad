// SPDX-License-Identifier: Apache-2.0
#include "quantize/architecture/architecture.hpp"

#include "quantize/architecture/expr.hpp"

#include <catch2/catch.hpp>

#include <boost/json.hpp>

#include <map>

using namespace modeld;
using namespace modeld::quantize;
namespace json = boost::json;

namespace {

class MapScope final : public ExprScope {
public:
  explicit MapScope(json::object values) : values_(std::move(values)) {}
  const json::value* find(std::string_view name) const override {
    return values_.if_contains(name);
  }

private:
  json::object values_;
};

std::string evaluated(std::string_view text) {
  static const MapScope scope(json::object{{"a", 7},
                                           {"b", 2},
                                           {"none", nullptr},
                                           {"list", {1, 2, 3}},
                                           {"nested", {{"x", 1.5}}},
                                           {"name", "text"}});
  const auto expr = Expr::parse(text);
  if (!expr) return "malformed";
  const auto value = expr->evaluate(scope);
  return value ? json::serialize(*value) : "error";
}

Result<ArchitectureSet> load(std::string_view family) {
  const std::vector<std::pair<std::string_view, std::string_view>> files{
      {"standard.toml", "[keys]\nsize = [\"block_count: u32 = block_count\"]\n"},
      {"test.toml", family}};
  return ArchitectureSet::load(files);
}

std::string fault(std::string_view family) {
  const auto loaded = load(family);
  return loaded ? "none" : loaded.error().message;
}

constexpr std::string_view k_head = "title = 'Test'\narch = 'test'\nclasses = ['TestModel']\n"
                                    "tokenizer = 'bpe'\n";

std::string with(std::string_view rest) {
  return std::string(k_head) + std::string(rest);
}

} // namespace

TEST_CASE("Expr computes as Python does", "[quantize][architecture]") {
  CHECK(evaluated("a // b") == "3");
  CHECK(evaluated("-a // b") == "-4");
  CHECK(evaluated("-a % b") == "1");
  CHECK(evaluated("a / b") == "3.5E0");
  CHECK(evaluated("2 ** 3 * b + 1") == "17");
  CHECK(evaluated("(a + b) * 2") == "18");
  CHECK(evaluated("int(a / b)") == "3");
  CHECK(evaluated("round(a / b)") == "4");
  CHECK(evaluated("round(2.5)") == "2");
  CHECK(evaluated("missing ?? none ?? a") == "7");
  CHECK(evaluated("find(missing, none, a)") == "null");
  CHECK(evaluated("has(none) and not has(missing)") == "true");
  CHECK(evaluated("a > 5 and a <= 7 ? 'yes' : 'no'") == "\"yes\"");
  CHECK(evaluated("nested.x") == "1.5E0");
  CHECK(evaluated("find(missing.x, nested.y, nested.x)") == "1.5E0");
  CHECK(evaluated("has(nested.x) and not has(nested.y) and not has(none.x)") == "true");
  CHECK(evaluated("missing.x.y ?? 'gone'") == "\"gone\"");
  CHECK(evaluated("list[-1] + len(list)") == "6");
  CHECK(evaluated("each(3, i % 2 == 0)") == "[true,false,true]");
  CHECK(evaluated("map(list, x * x + i)") == "[1,5,11]");
  CHECK(evaluated("b in list and not (a in list)") == "true");
  CHECK(evaluated("slice(list + [0, 0], 0, 4)") == "[1,2,3,0]");
  CHECK(evaluated("sum(list) + max(list) - min(1, 2)") == "8");
  CHECK(evaluated("starts_with(name, 'te') and contains(name, 'x')") == "true");
  CHECK(evaluated("name[0] + name[-1]") == evaluated("name[0] + name[len(name) - 1]"));
  CHECK(evaluated("each(2, name[i])").size() == std::string("['t','e']").size());
  CHECK(evaluated("object('x', a, 'y', [1]).y[0] + object('x', 2).x") == "3");
  CHECK(evaluated("10000.0") == "1E4");
}

TEST_CASE("Expr refuses what does not fit", "[quantize][architecture]") {
  CHECK(evaluated("a / 0") == "error");
  CHECK(evaluated("a + name") == "error");
  CHECK(evaluated("list[3]") == "error");
  CHECK(evaluated("name[99]") == "error");
  CHECK(evaluated("object('x')") == "error");
  CHECK(evaluated("object(1, 2)") == "error");
  CHECK(evaluated("9223372036854775807 + 1") == "error");
  for (const char* text : {"", "a +", "find(a + b)", "has(list[0])", "(a", "a b", "f(a)",
                           "find('a')", "each(3)", "'open", "1x", "a ? b", "[1, 2"}) {
    CAPTURE(text);
    CHECK(evaluated(text) == "malformed");
  }
  CHECK(evaluated(std::string(200, '(') + "a") == "malformed");
}

TEST_CASE("NamePattern takes numbers where they stand", "[quantize][architecture]") {
  const auto pattern = NamePattern::parse("blk.{bid}.experts.{xid}.w1");
  REQUIRE(pattern);
  const auto match = pattern->match("blk.12.experts.3.w1");
  REQUIRE(match);
  CHECK(match->bid == 12);
  CHECK(match->xid == 3);
  CHECK(pattern->fill(*match) == "blk.12.experts.3.w1");
  for (const char* name : {"blk.x.experts.3.w1", "blk.12.experts.3.w12", "blk..experts.3.w1",
                           "blk.-1.experts.3.w1", "blk.99999999999.experts.3.w1"}) {
    CHECK_FALSE(pattern->match(name));
  }
  CHECK(NamePattern::parse("*vision*")->match("a.vision.b"));
  CHECK_FALSE(NamePattern::parse("{nid}"));
}

TEST_CASE("every family's file is complete", "[quantize][architecture]") {
  const auto loaded = ArchitectureSet::builtin();
  if (!loaded) FAIL(loaded.error().message);
  CHECK((*loaded)->all().size() >= 1);
  CHECK_FALSE((*loaded)->find("LlamaForCausalLM").empty());
}

TEST_CASE("ArchitectureSet::load names file, line and fault", "[quantize][architecture]") {
  CHECK(fault(with("tensors = [{ from = 'a', to = 'b' }]\nkeys = ['@size']\n")) == "none");
  CHECK(fault(with("tensors = []\ncolour = 1\n")).find("there is no key 'colour'") !=
        std::string::npos);
  CHECK(fault(with("tensors = [{ from = 'a', to = 'b', ops = 'melt(1)' }]\n"))
            .find("line 5: there is no operation 'melt'") != std::string::npos);
  CHECK(fault(with("tensors = []\nkeys = ['x: u33 = 1']\n")).find("there is no type 'u33'") !=
        std::string::npos);
  CHECK(fault(with("tensors = []\nkeys = ['@nothing']\n")).find("no such list of keys") !=
        std::string::npos);
  CHECK(fault(with("tensors = []\nkeys = ['x: u32 = a +']\n")).find("at column") !=
        std::string::npos);
  CHECK(fault(with("tensors = []\noptions = ['dry_run']\n")).find("options are mtp") !=
        std::string::npos);
  CHECK(fault(with("tensors = []\nrename = [{ suffix = 'a', with = 'b', bid = '1' }]\n"))
            .find("only a prefix takes a number") != std::string::npos);
  CHECK(fault(with("tensors = []\nrename = [{ prefix = 'a.{x}.', with = 'b', bid = '1' }]\n"))
            .find("are holes") != std::string::npos);
  CHECK(fault("title = ").find("test.toml") != std::string::npos);
}

TEST_CASE("ArchitectureSet::load tells models and projectors of one class apart",
          "[quantize][architecture]") {
  const std::string head = "title = 'P'\narch = 'clip'\nclasses = ['TestModel']\n"
                           "type = 'mmproj'\ntensors = []\n";
  const std::string model = with("tensors = []\n");
  const std::vector<std::pair<std::string_view, std::string_view>> files{
      {"standard.toml", ""}, {"a.toml", model}, {"b.toml", head}};
  const auto loaded = ArchitectureSet::load(files);
  REQUIRE(loaded);
  REQUIRE(loaded->find("TestModel").size() == 1);
  CHECK(loaded->find("TestModel")[0]->file == "a.toml");
  REQUIRE(loaded->find("TestModel", FamilyKind::projector).size() == 1);
  CHECK(loaded->find("TestModel", FamilyKind::projector)[0]->file == "b.toml");
  CHECK(fault(head + "tokenizer = 'bpe'\n").find("no tokenizer") != std::string::npos);
  CHECK(fault(with("type = 'tower'\ntensors = []\n")).find("none of model") != std::string::npos);
}

TEST_CASE("ArchitectureSet::load refuses rules that can match twice", "[quantize][architecture]") {
  CHECK(fault(with("tensors = [{ from = 'l.{bid}.a', to = 'b' }, { from = ['x', 'l.{bid}.a'], "
                   "to = 'c' }]\n"))
            .find("take the same names") != std::string::npos);
  CHECK(fault(with("tensors = [{ from = 'a', to = 'blk.{bid}.b' }]\n")).find("has a number that") !=
        std::string::npos);
  CHECK(fault(with("tensors = [{ from = 'l.{bid}.{xid}.a', to = 'blk.{bid}.b' }]\n"))
            .find("no group") != std::string::npos);
  CHECK(fault(with("tensors = [{ from = 'a', to = 'b' }]\nprepare = ['unused = 1']\n"))
            .find("set and never read") != std::string::npos);
}
