// The table of verbs: arguments and explanations, from which parser, help and completion are
// made.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace shw::cli {

struct VerbRow {
  const char* name;
  // One letter per option or group of options, defined in verb_table.cpp.
  const char* options;
  const char* summary;
  const char* examples;
  const char* details = "";  // paragraphs, separated by empty lines
};
std::span<const VerbRow> verb_table();

// A group of verbs in help texts: its purpose, and the verb names separated by spaces.
struct VerbGroup {
  const char* title;
  std::string_view verbs;
};
std::span<const VerbGroup> verb_groups();
// The rows of a group in its order.
std::vector<const VerbRow*> verbs_of(const VerbGroup& group);

inline bool takes(std::string_view options, char letter) {
  return options.find(letter) != options.npos;
}

}  // namespace shw::cli
