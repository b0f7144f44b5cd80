// What `explain RULE` shows beside a rule's paragraph: a drawn example, what can be done, and where
// it was met. Read offline, so the example is here and nowhere else.
#pragma once

#include <span>
#include <string_view>

namespace shw {

struct Lesson {
  std::string_view rule;     // its id
  std::string_view drawing;  // lines of at most 78 columns, each indented by two, "\n" at each end
  std::string_view remedy;   // one or two sentences
  std::string_view link;     // may be empty
};

const Lesson* find_lesson(std::string_view rule);

// Its parts: where tiles lie, what a reference tells, and everything else. A lesson may be there
// before its rule.
std::span<const Lesson> layout_lessons();
std::span<const Lesson> reference_lessons();
std::span<const Lesson> storage_lessons();
std::span<const Lesson> contents_lessons();

}  // namespace shw
