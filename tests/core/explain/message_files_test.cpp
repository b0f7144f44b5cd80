// Rows of the table of messages as data: every file of assets/messages is read whole, a wrong file
// is refused with the row that is wrong, and conditions decide as a person reads them.
#include "core/explain/message_files.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "core/explain/message_condition.h"

using namespace shw;

namespace {

namespace fs = std::filesystem;

const fs::path kMessages = fs::path(SHW_SOURCE_DIR) / "assets" / "messages";

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// A file of one message, of which `row` is the part after its id.
Result<MessageGroup> group_with(const std::string& row) {
  const std::string text =
      R"({"schema": "shardwright-messages/1", "about": "a test", "order": 1,
          "meanings": {"lost": {"rule": "missing-file", "weight": 0.5, "title": "lost"}},
          "messages": [{"id": "one", )" +
      row + "}]}";
  return message_group_from_json(text, "test.json");
}

std::string refusal(const std::string& row) {
  const auto group = group_with(row);
  return group ? std::string() : group.error().message;
}

bool is_met_by(const std::string& condition, const ErrorMessage& message) {
  const auto group = group_with(R"("example": "x", "patterns": ["x"], )" + condition);
  REQUIRE(group.has_value());
  REQUIRE(group->kinds[0].condition != nullptr);
  return is_satisfied(*group->kinds[0].condition, message);
}

ErrorMessage named(std::string name) {
  ErrorMessage message;
  message.name = std::move(name);
  return message;
}

ErrorMessage counted(std::string_view key, std::int64_t number) {
  ErrorMessage message;
  message.numbers.emplace_back(key, number);
  return message;
}

}  // namespace

TEST_CASE("message files: the program has every file of assets/messages, in another order each") {
  std::size_t files = 0;
  std::set<std::int64_t> orders;
  for (const auto& entry : fs::directory_iterator(kMessages)) {
    CAPTURE(entry.path().string());
    const auto group = message_group_from_json(text_of(entry.path()), entry.path().string());
    REQUIRE_MESSAGE(group.has_value(), group.error().message);
    CHECK_FALSE(group->kinds.empty());
    CHECK(orders.insert(group->order).second);
    ++files;
  }
  CHECK(message_groups().size() == files);
}

TEST_CASE("message files: a row has its texts, its meanings and no condition but a given one") {
  const auto group = group_with(
      R"("loader": "verl", "example": "No X", "patterns": ["no <name>", "none"],
         "says_only_that_it_failed": true,
         "meanings": ["lost", {"id": "mine", "wrong": "request", "weight": 0.25, "title": "t",
                               "text": "x", "decide": "d", "command": "--data"}])");
  REQUIRE(group.has_value());
  const MessageKind& kind = group->kinds[0];
  CHECK(kind.id == "one");
  CHECK(kind.loader == "verl");
  CHECK(kind.patterns[1] == "none");
  CHECK(kind.patterns[2].empty());
  CHECK(kind.certainty == MessageCertainty::kOnlyFailure);
  CHECK(kind.condition == nullptr);
  REQUIRE(kind.meanings[0].rule != nullptr);
  CHECK(kind.meanings[0].rule->id == "missing-file");
  CHECK(kind.meanings[0].wrong == FaultSide::kEither);
  CHECK(kind.meanings[1].id == "mine");
  CHECK(kind.meanings[1].wrong == FaultSide::kRequest);
  CHECK(kind.meanings[1].weight == 0.25);
  CHECK(kind.meanings[1].command == "--data");
  CHECK(kind.meanings[2].title.empty());
}

TEST_CASE("message files: what is wrong in a file is said with its row") {
  const std::string fine = R"("example": "x", "patterns": ["x"])";
  CHECK(refusal(fine).empty());
  for (const std::string& row :
       {std::string(R"("patterns": ["x"])"), std::string(R"("example": "x")"),
        std::string(R"("example": "x", "patterns": [])"),
        std::string(R"("example": "x", "patterns": [1])"), fine + R"(, "patern": "y")",
        fine + R"(, "if": "no-such-test")", fine + R"(, "name": {"starts": ["x"]})",
        fine + R"(, "numbers": {"version": ["x"]})", fine + R"(, "numbers": 3)",
        fine + R"(, "meanings": ["unknown"])", fine + R"(, "meanings": [{"id": "x"}])",
        fine + R"(, "meanings": [{"id": "x", "title": "t", "weight": 1}])",
        fine + R"(, "meanings": [{"title": "t", "weight": 0.5}])",
        fine + R"(, "meanings": [{"rule": "no-rule", "title": "t", "weight": 0.5}])",
        fine + R"(, "meanings": [{"id": "x", "wrong": "me", "title": "t", "weight": 0.5}])",
        fine + R"(, "meanings": ["lost", "lost", "lost", "lost", "lost"])"}) {
    CAPTURE(row);
    CHECK(refusal(row).starts_with("message 1: "));
  }
  for (const char* text : {"", "[", "[]", "3", R"({"schema": "other"})"}) {
    CAPTURE(text);
    CHECK_FALSE(message_group_from_json(text, "test.json").has_value());
  }
}

TEST_CASE("message files: a row of words has its groups, with shared lists in their place") {
  const std::string row = R"("example": "x", "all": ["#sad", ["lost", "#sad"]], "none": ["not "])";
  const std::string lists = R"("words": {"sad": ["gone", "torn"]})";
  auto read = [](const std::string& message, const std::string& words) {
    return message_group_from_json(
        R"({"schema": "shardwright-messages/1", "about": "a test", "order": 1, )" + words +
            R"(, "messages": [{"id": "one", "meanings": [{"id": "m", "weight": 0.5, "title": "t"}], )" +
            message + "}]}",
        "test.json");
  };
  const auto group = read(row, lists);
  REQUIRE_MESSAGE(group.has_value(), group.error().message);
  REQUIRE(group->kinds[0].words != nullptr);
  const MessageWords& words = *group->kinds[0].words;
  using Group = std::vector<std::string_view>;
  REQUIRE(words.all.size() == 2);
  CHECK(words.all[0] == Group{"gone", "torn"});
  CHECK(words.all[1] == Group{"lost", "gone", "torn"});
  CHECK(words.none == Group{"not "});
  CHECK_FALSE(read(row, R"("words": {})").has_value());
  CHECK_FALSE(read(R"("example": "x", "all": [])", lists).has_value());
  CHECK_FALSE(read(row + R"(, "patterns": ["x"])", lists).has_value());
}

TEST_CASE("message conditions: one word of a test fits the name, and all tests pass") {
  const std::string ends = R"("name": {"is": ["", "v"], "ends": [".json"]})";
  CHECK(is_met_by(ends, named("")));
  CHECK(is_met_by(ends, named("v")));
  CHECK(is_met_by(ends, named("a/config.json")));
  CHECK_FALSE(is_met_by(ends, named("config.json.old")));
  const std::string both = R"("name": [{"begins": ["layers."]}, {"contains": [".wq.", ".wk."]}])";
  CHECK(is_met_by(both, named("layers.0.wk.weight")));
  CHECK_FALSE(is_met_by(both, named("model.layers.0.wk.weight")));
  CHECK_FALSE(is_met_by(both, named("layers.0.wv.weight")));
  const std::string none = R"("name": {"not": true, "begins": ["Meta"], "contains": [" "]})";
  CHECK(is_met_by(none, named("a.b")));
  CHECK_FALSE(is_met_by(none, named("a b")));
  CHECK_FALSE(is_met_by(none, named("MetadataIndex(")));
}

TEST_CASE("message conditions: named tests") {
  CHECK(is_met_by(R"("if": "tensor-name")", named("model.norm.weight")));
  CHECK_FALSE(is_met_by(R"("if": "tensor-name")", named("model.norm")));
  CHECK_FALSE(is_met_by(R"("if": "tensor-name")", named("/a/b.c.d")));
  CHECK(is_met_by(R"("if": ["tensor-name", "not scale-name"])", named("a.b.weight")));
  CHECK_FALSE(is_met_by(R"("if": ["tensor-name", "not scale-name"])", named("a.b.weight_scale")));
  CHECK(is_met_by(R"("if": "whole-number")", named("17")));
  CHECK_FALSE(is_met_by(R"("if": "whole-number")", named("")));
  CHECK(is_met_by(R"("if": "identifier")", named("qwen3_moe")));
  CHECK_FALSE(is_met_by(R"("if": "identifier")", named("Qwen3")));
  CHECK(is_met_by(R"("if": "device-count")", counted("devices", 64)));
  CHECK_FALSE(is_met_by(R"("if": "device-count")", counted("devices", 1'048'576)));
  CHECK(is_met_by(R"("if": "clip-length")", counted("rows1", 154)));
  CHECK_FALSE(is_met_by(R"("if": "clip-length")", counted("rows1", 64)));
  CHECK(is_met_by(R"("numbers": {"version": [7, 8]})", counted("version", 8)));
  CHECK_FALSE(is_met_by(R"("numbers": {"version": [7, 8]})", counted("version", 9)));
  CHECK_FALSE(is_met_by(R"("numbers": {"version": [7, 8]})", named("x")));

  ErrorMessage sizes = counted("target", 32000);
  sizes.numbers.emplace_back("source", 32002);
  CHECK(is_met_by(R"("if": "not-multiples")", sizes));
  CHECK_FALSE(is_met_by(R"("if": "one-empty")", sizes));
  sizes.numbers[1].second = 4000;
  CHECK_FALSE(is_met_by(R"("if": "not-multiples")", sizes));
  sizes.numbers[0].second = 0;
  CHECK(is_met_by(R"("if": "one-empty")", sizes));

  ErrorMessage bytes = counted("expected_bytes", 10);
  bytes.numbers.emplace_back("found_bytes", 11);
  CHECK(is_met_by(R"("if": "found-more-bytes")", bytes));
  bytes.numbers[1].second = 10;
  CHECK_FALSE(is_met_by(R"("if": "found-more-bytes")", bytes));

  ErrorMessage shapes;
  CHECK_FALSE(is_met_by(R"("if": "two-shapes")", shapes));
  shapes.saved = {8, 4};
  shapes.current = {8, 8};
  CHECK(is_met_by(R"("if": "two-shapes")", shapes));
  CHECK(is_met_by(R"("if": "packed-in-file")", shapes));
  shapes.current = {16, 4};
  CHECK_FALSE(is_met_by(R"("if": "packed-in-file")", shapes));
  for (std::string_view name : message_test_names()) CHECK(message_test(name).has_value());
}
