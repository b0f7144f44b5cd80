#include "core/formats/common/carried_pickle.h"

#include <doctest/doctest.h>

#include "core/make_zip.h"

using namespace shw;
using namespace shw::test;
using namespace std::string_literals;

namespace {

Result<CarriedPickle> carried(const std::string& pickle) {
  const Bytes bytes = to_bytes(pickle);
  SHW_TRY(PickleTree tree, decode_pickle(bytes, "p", 100));
  return carried_pickle(tree, tree.root(), bytes, 100, 1 << 20);
}

std::string carried_text(const std::string& pickle) {
  auto out = carried(pickle);
  REQUIRE_MESSAGE(out.has_value(), out.error().message);
  return out->opcodes;
}

std::string storage(const std::string& key) {
  return "(" + pickled_text("storage") + "ctorch\nFloatStorage\n" + pickled_text(key) +
         pickled_text("cpu") + "K\6tQ";
}

}  // namespace

TEST_CASE("every kind of value is carried over, and carried again is the same opcodes") {
  const std::string values[] = {
      "N",
      "\x88",
      "K\5",
      "\x8a\x09\1\2\3\4\5\6\7\x08\x09"s,
      "G\x7f\xf0\0\0\0\0\0\0"s,
      pickled_text("text"),
      pickled_text("\xed\xa0\x80"),  // half of a surrogate pair, which Python keeps
      "(K\1K\2t",
      "](K\1](K\2ee",
      "}(" + pickled_text("a") + "}K\1Nsu",
      "\x8f(K\1K\2\x90",
      "(K\1K\2\x91",
      "\x96\3\0\0\0\0\0\0\0abc"s,
      "C\3a\0\xff"s,
      "c__builtin__\nset\n](K\1K\2e\x85R",
      "c__builtin__\ncomplex\nG\0\0\0\0\0\0\0\0G\0\0\0\0\0\0\0\0\x86R"s,
      "c__builtin__\nxrange\n(K\0K\3K\1tR"s,  // range(0, 3)
      "ctorch\nbfloat16\n",
      "ctorch\ndevice\n" + pickled_text("cuda") + "K\1\x86R",
      "ctorch\nSize\n(K\2K\3t\x85R",
      "ccollections\nOrderedDict\n)R(" + pickled_text("a") + "K\1u}" + pickled_text("_m") + "K\2sb",
      "cargparse\nNamespace\n)\x81}" + pickled_text("lr") + "K\1sb",
      tensor_call({}),
      "(" + tensor_call({}) + tensor_call({.count = 6, .offset = 3, .sizes = {3}, .strides = {1}}) +
          "t",
  };
  for (const std::string& value : values) {
    CAPTURE(value);
    const std::string once = carried_text("\x80\x05" + value + ".");
    auto placed = renumber_memo_entries(once, 0, 0);
    REQUIRE(placed.has_value());
    CHECK(carried_text(as_pickle(placed->opcodes)) == once);
  }
}

TEST_CASE("a set, a frozenset and bytes of either kind stay what they are") {
  CHECK(carried_text("\x80\x05\x8f.").find("__builtin__\nset\n") != std::string::npos);
  CHECK(carried_text("\x80\x05(\x91.").find("__builtin__\nfrozenset\n") != std::string::npos);
  CHECK(carried_text("\x80\x05\x96\1\0\0\0\0\0\0\0a."s).find("bytearray") != std::string::npos);
  CHECK(carried_text("\x80\x05"s + "C\1a.").find("bytearray") == std::string::npos);
}

TEST_CASE("what is there twice is one thing again, and a list may hold itself") {
  // [a, a], where a is [1]
  const std::string twice = carried_text(as_pickle("](]q\0(K\1eh\0e"s));
  CHECK(twice.find("]r"s + little(0, 4)) != std::string::npos);
  CHECK(twice.find("j"s + little(0, 4)) != std::string::npos);
  // [[1], [1]]
  CHECK(carried_text(as_pickle("](](K\1e](K\1ee")).find('r') == std::string::npos);
  const std::string endless = carried_text(as_pickle("]q\0h\0a"s));
  CHECK(endless == "]r" + little(0, 4) + "(j" + little(0, 4) + "e");
  // A tuple that holds a list that holds the tuple.
  auto refused = carried(as_pickle("]q\0(h\0tq\1ah\1"s + "0"));
  CHECK((refused.has_value() || refused.error().kind == ErrorKind::kUnsupported));
}

TEST_CASE("storages have numbers in the order in which they are named") {
  auto out = carried(as_pickle("(" + storage("7") + storage("2") + storage("7") + "t"));
  REQUIRE(out.has_value());
  CHECK(out->storage_keys == std::vector<std::string>{"7", "2"});
  auto placed = renumber_memo_entries(out->opcodes, 0, 10);
  REQUIRE(placed.has_value());
  const std::string& opcodes = placed->opcodes;
  CHECK(opcodes.find(pickled_text("10")) < opcodes.find(pickled_text("11")));
  CHECK(opcodes.find(pickled_text("10"), opcodes.find(pickled_text("11"))) != std::string::npos);
}

TEST_CASE("memo numbers move by as many as are taken before") {
  auto placed = renumber_memo_entries("]r" + little(0, 4) + "(j" + little(0, 4) + "e", 300, 0);
  REQUIRE(placed.has_value());
  CHECK(placed->memo == 1);
  CHECK(placed->opcodes == "]r" + little(300, 4) + "(j" + little(300, 4) + "e");
  for (const char* odd : {"X\xff", "\xff", "r\1"})
    CHECK_FALSE(renumber_memo_entries(odd, 0, 0).has_value());
}

TEST_CASE("what would run something or is not known is refused by its name") {
  const std::pair<std::string, const char*> rows[] = {
      {"cos\nsystem\n" + pickled_text("true") + "\x85R", "os.system"},
      {"](c__main__\nConfig\n)\x81"
       "e",
       "__main__.Config"},
      {"(cbuiltins\ngetattr\n(K\1K\2tRt", "builtins.getattr"},
      {"ccollections\nOrderedDict\n)R)R", "function call"},
      {"K\1Q", "storage"},
  };
  for (const auto& [value, name] : rows) {
    CAPTURE(name);
    auto refused = carried(as_pickle(value));
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().kind == ErrorKind::kUnsupported);
    CAPTURE(refused.error().message);
    CHECK(refused.error().message.find(name) != std::string::npos);
  }
}
