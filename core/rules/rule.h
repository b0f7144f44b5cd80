// A rule is described by one row: its explanation, and the meaning of its findings for plans,
// reports and loads. Other code uses the row of a finding (rules.h) and never compares rule
// ids.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/facts/depth.h"
#include "core/model/finding.h"

namespace shw {

struct Facts;
using RuleFunction = void (*)(const Facts&, std::vector<Finding>&);
// A rule whose reads are divided among the ranks of a team. Errors: a failure of the team, or
// cancellation.
using SharedRuleFunction = Status (*)(const Facts&, std::vector<Finding>&);

// Shown by `explain RULE` below the paragraph; includes the example, so that it works offline.
struct RuleExplanation {
  std::string_view drawing = {};  // lines of at most 78 columns, indented by two, "\n" at both ends
  std::string_view remedy = {};   // one or two sentences
  std::string_view link = {};     // a public report; may be empty
};

// What happens when the checkpoint is loaded. Used if severity, remedy and diagnoses of a finding
// do not determine it.
enum class RunOutcome : std::uint8_t {
  kLoadsWrongValues,  // loads without a message
  kLoadFails,         // refused by torch's planner, its pickle or the file system
  kLoadFailsByShape,  // as kLoadFails if the evidence names two shapes
  kLosesElements,     // some keep their values from before the load
  kIsFilled,          // some were lost earlier; independent of severity
  kRunsForeignCode,   // runs foreign code or reads foreign files; may load too
  kNone,              // wrong options, not a wrong checkpoint
};

// Symptoms on the same tensors that become infos after an error of this rule.
enum class ExplainedSymptoms : std::uint8_t { kNothing, kTiles, kTilesIfRepaired, kTilesAndItems };
enum class SymptomIn : std::uint8_t { kNothing, kTiles, kItems };

// Repairs that are unsafe after a finding above info.
enum class Blocking : std::uint8_t {
  kNothing,
  kReading,   // reads of the subjects: metadata repairs are still possible
  kNamed,     // any repair of the subjects
  kWholeFile  // all tensors in a metadata file among the subjects
};

// What repairs a finding that has no diagnoses of its own.
enum class RepairedBy : std::uint8_t {
  kNothing,
  kTiles,         // concerns boxes only: repaired once the planned chunks are exact
  kTilesOfItems,  // as kTiles if they also have the sizes of their items
  kNewIndex,
  kNewFile,  // the same tensors in new files
  kNewMetadata
};

enum class SubjectKind : std::uint8_t { kAnything, kAbsentTensors, kFilesAndTheirTensors };

// Text next to the number of subjects; without it the consequence is used.
struct RuleWords {
  std::string_view text = {};        // "will not load"
  std::string_view as_warning = {};  // used for warnings; empty: `text`
  bool as_info = false;              // also for infos
  bool names_versions = false;       // "needs torch 2.15 or newer": from the evidence
};

// Text for the line about coverage; empty: not affected.
struct CoverageWords {
  std::string_view text = {};
  int place = 0;                         // sort order within the line
  bool applies_at_any_severity = false;  // otherwise only for errors
  bool instead = false;                  // replaces all other statements about coverage
};

// Text for an info that is a suspicion, and what would decide it.
struct RuleHint {
  std::string_view what = {}, needs = {};
  bool remains_open_with_spec = false, remains_open_at_data = false;
};

struct Rule {
  std::string_view id = {};        // stable
  Depth depth = Depth::kMetadata;  // minimum depth
  std::string_view title = {};     // "Placement recorded for the wrong axis"
  std::string_view teaches = {};   // a paragraph: meaning, cause and possible actions
  RuleExplanation lesson = {};
  RuleWords words = {};
  CoverageWords coverage = {};
  RuleHint hint = {};
  RunOutcome outcome = RunOutcome::kLoadsWrongValues;
  ExplainedSymptoms cause_of = ExplainedSymptoms::kNothing;
  SymptomIn symptom_in = SymptomIn::kNothing;
  Blocking blocks = Blocking::kNothing;
  RepairedBy repaired_by = RepairedBy::kNothing;
  SubjectKind subjects = SubjectKind::kAnything;
  bool leaves_undecided = false;     // something could not be examined
  bool damages_bytes = false;        // bytes differ from those written
  bool boxes_overlap = false;        // boxes in the evidence are claimed twice; otherwise unclaimed
  bool splits_rows_of_rank = false;  // the repair splits one rank's rows
  bool survives_rewriting = false;   // names and shapes stay wrong in other chunks and formats
  bool makes_shapes_doubtful = false;       // shapes of the subjects may not be the model's
  RuleFunction run = nullptr;               // null: reported on opening or by another rule
  SharedRuleFunction run_shared = nullptr;  // alternative to `run`
};

}  // namespace shw
