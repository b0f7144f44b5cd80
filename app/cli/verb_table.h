// Every verb with what it takes and how it is explained: what the command line, its help and its
// completion are made from.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace shw::cli {

struct VerbRow {
  const char* name;
  // One letter an option, or a few that belong together: verb_table.cpp says which.
  const char* options;
  const char* summary;
  const char* examples;
  const char* details = "";  // paragraphs, an empty line between them
};
std::span<const VerbRow> verb_table();

// How the verbs are told to people: what they are for, and their names parted by one space.
struct VerbGroup {
  const char* title;
  std::string_view verbs;
};
std::span<const VerbGroup> verb_groups();
// The rows of a group, in its order.
std::vector<const VerbRow*> verbs_of(const VerbGroup& group);

inline bool takes(std::string_view options, char letter) {
  return options.find(letter) != options.npos;
}

}  // namespace shw::cli
