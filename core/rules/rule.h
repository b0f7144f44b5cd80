// What is known about a rule stands in one row: what it teaches, and what its findings are to a
// plan, to a report and to a run that loads the checkpoint. Others ask the row of a finding
// (rules.h), never which rule it is of.
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
// Of a rule whose reading the members of a team share out: an error where the team broke, or where
// somebody stopped it.
using SharedRuleFunction = Status (*)(const Facts&, std::vector<Finding>&);

// What `explain RULE` shows beside the paragraph. It is read offline, so the example is here.
struct Lesson {
  std::string_view drawing =
      {};  // lines of at most 78 columns, each indented by two, "\n" at each end
  std::string_view remedy = {};  // one or two sentences
  std::string_view link = {};    // where it was met; may be empty
};

// What becomes of a run, where severity, remedy and diagnoses of a finding do not say it.
enum class RunOutcome : std::uint8_t {
  kReadsWrong,     // loads without a word
  kStops,          // torch's planner, its pickle or the file system refuses
  kStopsByShape,   // the same where the evidence names two shapes
  kLosesElements,  // some are left as they were before the load
  kIsFilled,       // some were lost before, whatever the severity
  kIsHostile,      // runs somebody's code or reads somebody's file, and may load all the same
  kNone,           // a person's words are wrong, not the checkpoint
};

// Errors of a cause make symptoms of the same tensors something only to know.
enum class CauseOf : std::uint8_t { kNothing, kTiles, kTilesOnceMended, kTilesAndItems };
enum class SymptomIn : std::uint8_t { kNothing, kTiles, kItems };

// Which repairs are a guess after a finding above info.
enum class Blocking : std::uint8_t {
  kNothing,
  kReading,   // of what it names: the metadata alone can still be planned for
  kNamed,     // any of what it names
  kWholeFile  // any of what stands in a metadata file that it names
};

// What else than the diagnoses of a finding mends it.
enum class MendedBy : std::uint8_t {
  kNothing,
  kTiles,         // speaks of labels alone: over once the tiles of a plan are exact
  kTilesOfItems,  // the same, where they also have the sizes of their items
  kNewIndex,
  kNewFile,  // the same tensors, and nothing else
  kNewMetadata
};

enum class SubjectsAre : std::uint8_t { kAnything, kTensorsNotHere, kFilesAndTheirTensors };

// Beside the count of a finding's subjects; without, its consequence says it.
struct RuleWords {
  std::string_view text = {};        // "will not load"
  std::string_view as_warning = {};  // instead of `text`; empty: the same
  bool as_info = false;              // also of what is only to know
  bool names_versions = false;       // "needs torch 2.15 or newer": from the evidence
};

// In the line about coverage; empty: does not touch it.
struct CoverageWords {
  std::string_view text = {};
  int place = 0;                 // in the line, the least first
  bool at_any_severity = false;  // else as an error
  bool instead = false;          // nothing else can be said of coverage
};

// An info that says "perhaps", and what turns it into yes or no.
struct RuleHint {
  std::string_view what = {}, needs = {};
  bool open_with_spec = false, open_at_data = false;
};

struct Rule {
  std::string_view id = {};        // never changes
  Depth depth = Depth::kMetadata;  // the least that it needs
  std::string_view title = {};     // "Placement recorded for the wrong axis"
  std::string_view teaches = {};   // a paragraph: what it means, how it happens, what can be done
  Lesson lesson = {};
  RuleWords words = {};
  CoverageWords coverage = {};
  RuleHint hint = {};
  RunOutcome outcome = RunOutcome::kReadsWrong;
  CauseOf cause_of = CauseOf::kNothing;
  SymptomIn symptom_in = SymptomIn::kNothing;
  Blocking blocks = Blocking::kNothing;
  MendedBy mended_by = MendedBy::kNothing;
  SubjectsAre subjects = SubjectsAre::kAnything;
  bool leaves_undecided = false;  // something could not be looked at
  bool damages_bytes = false;     // bytes are not those that were written
  bool boxes_overlap = false;     // boxes in the evidence are claimed twice; else by nobody
  bool parts_ranks = false;       // mended, one rank's rows are no longer side by side
  bool outlasts_writing = false;  // names and shapes say it in other tiles and formats as well
  bool doubts_shapes = false;     // shapes of what it names may not be the model's own
  RuleFunction run = nullptr;     // null for those that opening, or another rule, reports
  SharedRuleFunction run_shared = nullptr;  // in place of `run`
};

}  // namespace shw
