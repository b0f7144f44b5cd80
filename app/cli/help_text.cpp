// The text of --help.
#include "app/cli/options.h"
#include "app/cli/verb_table.h"

namespace shw::cli {

std::string help_text() {
  std::string text =
      "Opens a sharded checkpoint, shows which rank wrote which tile of which tensor, says in "
      "plain\n"
      "words what is wrong, and repairs it with proof.\n\n"
      "  shardwright demo demo                               a broken checkpoint to try it on\n"
      "  shardwright check demo/step_9000 --spec demo/spec.json\n"
      "  shardwright repair demo/step_9000 --spec demo/spec.json\n"
      "  shardwright verify demo/step_9000-repaired\n\n"
      "`shardwright help VERB` says more of each verb:\n";
  for (const VerbGroup& group : verb_groups()) {
    text += std::string("\n") + group.title + "\n";
    for (const VerbRow* verb : verbs_of(group)) {
      std::string name = verb->name;
      name.resize(12, ' ');
      text += "  " + name + verb->summary + "\n";
    }
  }
  return text +
         "\nA path alone is checked: `shardwright step_9000`.\n"
         "Every verb but completion takes --json, --quiet, --color and --threads;\n"
         "`shardwright -V` says which version this is.\n"
         "Exit codes: 0 clean, 1 findings at or above --fail-on or no tensor fits, 2 could not\n"
         "decide or incomplete, 3 usage, 4 the system refused to read or write.\n";
}

}  // namespace shw::cli
