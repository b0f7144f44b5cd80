// The table of rules: every row is complete, and no other code depends on its contents.
#include "core/rules/rules.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "core/report/answers.h"
#include "core/report/text.h"
#include "core/report/text_words.h"

using namespace shw;

namespace {

namespace fs = std::filesystem;

std::string content_of(const fs::path& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return std::move(out).str();
}

// Occurrences of a rule's id as a string in `text`. Kinds of messages have their own ids, which may
// equal a rule's: ".id = ..." in the tables of explain, and "...Form = ...".
std::vector<std::string> ids_in(const std::string& text) {
  std::vector<std::string> found;
  for (const Rule& rule : all_rules()) {
    std::string quoted = "\"" + std::string(rule.id) + "\"";
    for (std::size_t at = text.find(quoted); at != text.npos; at = text.find(quoted, at + 1)) {
      std::string before = text.substr(text.rfind('\n', at) + 1, at - text.rfind('\n', at) - 1);
      if (!before.ends_with(".id = ") && !before.ends_with("Form = ") &&
          before.find("//") == before.npos)
        found.push_back(quoted);
    }
  }
  return found;
}

}  // namespace

TEST_CASE("every row of the table of rules is complete") {
  std::set<std::string_view> ids;
  for (const Rule& rule : all_rules()) {
    CAPTURE(rule.id);
    CHECK(ids.insert(rule.id).second);
    CHECK(find_rule(rule.id) == &rule);
    CHECK(rule.title.size() > 10);
    CHECK(rule.teaches.size() > 100);
    CHECK(rule.lesson.remedy.size() > 20);
    CHECK((rule.lesson.link.empty() || rule.lesson.link.starts_with("https://")));
    CHECK((rule.words.as_warning.empty() || !rule.words.text.empty()));
    CHECK(rule.hint.what.empty() == rule.hint.needs.empty());
    CHECK(rule.coverage.text.empty() == (rule.coverage.place == 0 && !rule.coverage.instead));
    // A rule about causes is not also one about symptoms.
    CHECK((rule.cause_of == ExplainedSymptoms::kNothing || rule.symptom_in == SymptomIn::kNothing));
  }
}

TEST_CASE("a finding of no rule has a row without roles") {
  Finding finding;
  finding.rule = "of-another-version";
  CHECK(rule_of(finding).id.empty());
  CHECK(rule_of(finding).blocks == Blocking::kNothing);
  finding.rule = "coverage-gap";
  CHECK(rule_of(finding).id == "coverage-gap");
}

TEST_CASE("no rule's id is written as a string outside the rooms that find it") {
  fs::path root = SHW_SOURCE_DIR;
  std::size_t seen = 0;
  for (const char* folder : {"core", "views", "app"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      std::string extension = entry.path().extension().string();
      std::string path = fs::relative(entry.path(), root).string();
      // Opening reports some of them before any rule runs.
      if ((extension != ".h" && extension != ".cpp") || path.starts_with("core/formats/") ||
          path.starts_with("core/model/finding.h"))
        continue;
      ++seen;
      CAPTURE(path);
      std::string text = content_of(entry.path());
      for (const std::string& id : ids_in(text)) {
        // A rule's own file: the row and its findings.
        bool own = path.starts_with("core/rules/") && text.find(".id = " + id) != text.npos;
        CHECK_MESSAGE(own, id);
      }
    }
  }
  CHECK(seen > 200);
  CHECK(ids_in("if (finding.rule == \"bad-record\") return;").size() == 1);
  CHECK(ids_in("{.id = \"bad-record\"} // \"bad-record\"").empty());
}

TEST_CASE("drawings are at most 78 columns, indented, and without trailing spaces") {
  for (const Rule& rule : all_rules()) {
    CAPTURE(rule.id);
    CHECK(rule.lesson.drawing.starts_with("\n  "));
    CHECK(rule.lesson.drawing.ends_with("\n"));
    std::istringstream lines{std::string(rule.lesson.drawing)};
    std::string line;
    std::size_t count = 0;
    while (std::getline(lines, line)) {
      if (line.empty()) continue;
      ++count;
      CAPTURE(line);
      CHECK(display_width(line) <= 78);
      CHECK(line.starts_with("  "));
      CHECK_FALSE(line.ends_with(" "));
      CHECK(line.find('\t') == std::string::npos);
    }
    CHECK(count >= 2);
  }
}

TEST_CASE("the drawing and what can be done are in the text and in the JSON of a rule") {
  const Rule* rule = find_rule("placement-axis-moved");
  REQUIRE(rule != nullptr);
  for (const std::string& text : {rule_to_text(*rule), rule_to_json(*rule)}) {
    CHECK(text.find("│  0   3 │") != std::string::npos);
    CHECK(text.find("corrects the chunk offsets") != std::string::npos);
    CHECK(text.find("Automodel/pull/1691") != std::string::npos);
  }
}
