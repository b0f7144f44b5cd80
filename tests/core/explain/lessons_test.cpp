#include "core/explain/lessons.h"

#include <doctest/doctest.h>

#include <set>
#include <sstream>
#include <string>

#include "core/report/answers.h"
#include "core/report/text.h"
#include "core/report/text_words.h"
#include "core/rules/check.h"

using namespace shw;

TEST_CASE("every rule has one drawn example") {
  std::set<std::string_view> drawn;
  for (auto part : {layout_lessons(), reference_lessons(), storage_lessons(), contents_lessons()}) {
    for (const Lesson& lesson : part) {
      CAPTURE(lesson.rule);
      CHECK(drawn.insert(lesson.rule).second);
      CHECK(lesson.remedy.size() > 20);
      CHECK((lesson.link.empty() || lesson.link.starts_with("https://")));
    }
  }
  for (const Rule& rule : all_rules()) {
    CAPTURE(rule.id);
    CHECK(drawn.count(rule.id) == 1);
  }
}

TEST_CASE("drawings are at most 78 columns, indented, and without trailing spaces") {
  for (auto part : {layout_lessons(), reference_lessons(), storage_lessons(), contents_lessons()}) {
    for (const Lesson& lesson : part) {
      CHECK(lesson.drawing.starts_with("\n  "));
      CHECK(lesson.drawing.ends_with("\n"));
      std::istringstream lines{std::string(lesson.drawing)};
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
}

TEST_CASE("the drawing and what can be done stand in the text and in the JSON of a rule") {
  const Rule* rule = find_rule("placement-axis-moved");
  REQUIRE(rule != nullptr);
  for (const std::string& text : {rule_to_text(*rule), rule_to_json(*rule)}) {
    CHECK(text.find("│  0   3 │") != std::string::npos);
    CHECK(text.find("relabels the tiles") != std::string::npos);
    CHECK(text.find("Automodel/pull/1691") != std::string::npos);
  }
}
