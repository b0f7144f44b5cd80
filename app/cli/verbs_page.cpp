// Generates docs/verbs.md from the verb table.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "app/cli/command_text.h"
#include "app/cli/options.h"
#include "app/cli/verb_options.h"
#include "app/cli/verb_table.h"
#include "core/verbs/known_formats.h"
#include "core/verbs/map_convert.h"
#include "core/verbs/written_as.h"

namespace shw::cli {
namespace {

constexpr const char* kHead =
    "# Verbs and options\n\n"
    "Look here when you know what you want to do and not how it is typed.\n\n"
    "`shardwright completion markdown` prints this page, so it says what the program takes. "
    "`shardwright help VERB` and `man shardwright` say the same at the terminal.\n\n"
    "A command is `shardwright VERB CHECKPOINT`. CHECKPOINT is a folder or a file. "
    "`RUN/@latest` is the newest step of a run. `RUN/@latest-complete` is the newest step whose "
    "save has finished. A path alone is checked.\n";

constexpr const char* kJson =
    "## JSON\n\n"
    "Every verb but `completion` answers in JSON with `--json`. stdout is data, stderr is talk. "
    "The schema is `assets/schema/shardwright-2.schema.json` of the source. It also says what each "
    "key of a finding's `evidence` means. Keys are added, never renamed within a version. A verb "
    "that fails prints an `error` with `message`, `file` and "
    "`offset`.\n\n"
    "| verb | keys of its answer |\n|---|---|\n"
    "| `info` | `format`, `tensors`, `chunks`, `files`, `bytes`, `ranks` |\n"
    "| `show` | `fqn`, `shape`, `dtype`, `chunks` with `offsets`, `sizes`, `file`, `offset`, "
    "`length`, `writer`; `values` row-major |\n"
    "| `check` | `verdict` (clean, findings, undecided), `depth`, `findings`, `unjudged` |\n"
    "| `plan` | the plan with its `hash`; `repair --plan FILE` takes it, edited or not |\n"
    "| `repair`, `reshard`, `convert` | `output`, `certificate` |\n"
    "| `verify` | `verdict`: proved, broken, undecided |\n"
    "| `diff` | `verdict`: same, different, undecided; `tensors` that differ, each with its "
    "`kind` |\n"
    "| `stats` | per tensor `elements`, `nan`, `inf`, `zero`, `denormal`, `min`, `max`, `mean`, "
    "`std`, `histogram` |\n"
    "| `export-hdf5` | `output`, `tensors`, `left_out` |\n"
    "| `explain` | `hypotheses` by rank, with `wrong`, `confidence`, `text`, `decide`, `command`; "
    "`parsed.messages`, where told with `loader`, `expected` and `found` |\n";

std::string escape_markdown_cell(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

std::string names_in_code(const ArgumentUse& option) {
  std::string text;
  for (const std::string& name : option.names) text += (text.empty() ? "" : ", ") + name;
  if (!option.value.empty()) text += " " + option.value;
  return "`" + escape_markdown_cell(text) + "`";
}

std::string option_rows(const std::vector<ArgumentUse>& options) {
  std::string rows;
  for (const ArgumentUse& option : options)
    rows += fmt::format("| {} | {} |\n", names_in_code(option), escape_markdown_cell(option.text));
  return rows;
}

std::string usage_of(const VerbUse& verb) {
  std::string text = "shardwright " + verb.name;
  for (const ArgumentUse& place : verb.places) {
    const std::string name = place.names.front() + (place.repeats ? " ..." : "");
    text += place.is_required ? " " + name : " [" + name + "]";
  }
  return text;
}

std::string verb_section(const VerbUse& verb) {
  std::string text = fmt::format("### {}\n\n{}.\n\n", verb.name, verb.summary);
  if (!verb.details.empty()) text += verb.details + "\n\n";
  text += fmt::format("```\n{}\n\n  {}\n```\n", usage_of(verb), verb.examples);
  std::vector<ArgumentUse> own = verb.places;
  for (const ArgumentUse& option : verb.options) {
    if (!is_common_option(long_name(option))) own.push_back(option);
  }
  own.erase(std::remove_if(own.begin(), own.end(),
                           [](const ArgumentUse& one) { return one.text.empty(); }),
            own.end());
  if (!own.empty()) text += "\n| | |\n|---|---|\n" + option_rows(own);
  return text + "\n";
}

std::string common_section(const VerbUse& verb) {
  std::vector<ArgumentUse> common;
  for (const ArgumentUse& option : verb.options) {
    if (is_common_option(long_name(option))) common.push_back(option);
  }
  return "## What every verb takes\n\n| | |\n|---|---|\n" + option_rows(common) + "\n";
}

std::string note_rows(std::span<const OptionNote> notes) {
  std::string text = "| | |\n|---|---|\n";
  for (const OptionNote& note : notes)
    text += fmt::format("| `{}` | {} |\n", note.option, escape_markdown_cell(note.text));
  return text;
}

std::string_view repair_output_text(Rewrite rewrite) {
  switch (rewrite) {
    case Rewrite::kIndex:
      return "a new index, and files for what is recreated";
    case Rewrite::kFiles:
      return "every file that changes";
    case Rewrite::kNone:
      break;
  }
  return "no";
}

std::string targets_in_code(std::string_view format) {
  std::string text;
  for (const std::string& target : verbs::convert_targets()) {
    if (verbs::format_of_naming_scheme(target) == format)
      text += (text.empty() ? "`" : ", `") + target + "`";
  }
  return text.empty() ? "no" : text;
}

// How files of this format can be written: by which `convert --to`, by `repair`, or "no".
std::string writable_by_text(const verbs::KnownFormat& format) {
  const std::string targets = targets_in_code(format.name);
  std::string text = targets == "no" ? "" : "by `convert --to` " + targets;
  if (format.repaired != Rewrite::kNone)
    text += (text.empty() ? "" : ", ") + std::string("by `repair`");
  return text.empty() ? "no" : text;
}

// The table of formats: what can be opened, written, checked and refused. Formats with equal cells
// share a row. README has a copy between its marks.
std::string formats_summary() {
  std::vector<std::pair<std::string, std::string>> rows;  // by what can be done: the formats
  auto add = [&](const std::string& can, std::string_view title) {
    auto row =
        std::find_if(rows.begin(), rows.end(), [&](const auto& one) { return one.first == can; });
    if (row == rows.end()) row = rows.insert(row, {can, ""});
    row->second += (row->second.empty() ? "" : "; ") + escape_markdown_cell(title);
  };
  for (const verbs::KnownFormat& format : verbs::known_formats())
    add(fmt::format("yes | {} | {}", writable_by_text(format),
                    format.has_checksums ? "values, checksums" : "values"),
        format.title);
  for (std::string_view title : verbs::refused_formats()) add("refused by name | no | no", title);
  std::string text = "<!-- formats -->\n| format | opens | writes | checks |\n|---|---|---|---|\n";
  for (const auto& [can, titles] : rows) text += fmt::format("| {} | {} |\n", titles, can);
  return text + "<!-- end of formats -->\n";
}

std::string formats_section() {
  std::string text =
      "## Formats\n\n" + formats_summary() +
      "\nIn the order in which a folder is tried. [formats.md](formats.md) says more on each.\n\n| "
      "format | is recognised by | `format` in JSON | `convert --to` | `repair` writes | items "
      "have checksums |\n|---|---|---|---|---|---|\n";
  for (const verbs::KnownFormat& format : verbs::known_formats())
    text +=
        fmt::format("| {} | {} | `{}` | {} | {} | {} |\n", escape_markdown_cell(format.title),
                    escape_markdown_cell(format.sign), format.name, targets_in_code(format.name),
                    repair_output_text(format.repaired), format.has_checksums ? "yes" : "no");
  return text + "\n";
}

}  // namespace

std::string verbs_page(const std::vector<VerbUse>& verbs) {
  std::string text = kHead;
  for (const VerbGroup& group : verb_groups()) {
    text += fmt::format("\n## {}\n\n", group.title);
    for (const VerbRow* row : verbs_of(group)) {
      auto use = std::find_if(verbs.begin(), verbs.end(),
                              [&](const VerbUse& verb) { return verb.name == row->name; });
      if (use != verbs.end()) text += verb_section(*use);
    }
  }
  text += common_section(verbs.front());
  text += "## More on some options\n\n" + note_rows(option_notes()) + "\n";
  text += formats_section();
  text += "## Exit codes\n\n" + note_rows(exit_codes()) + "\n";
  return text + kJson;
}

}  // namespace shw::cli
