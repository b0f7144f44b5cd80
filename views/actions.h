// Everything that a key, a button or the command palette can do: one table of names, shortcuts and
// hints, from which the palette is drawn too.
#pragma once

#include <span>

#include "views/desk_state.h"

namespace shw {

enum class Action : std::uint8_t {
  kPalette,
  kFilter,
  kShowFindings,
  kShowAll,
  kNextFinding,
  kPreviousFinding,
  kReview,
  kApply,
  kApplyInPlace,
  kDryRun,
  kPlanUndo,
  kPlanRedo,
  kResume,
  kRollBack,
  kCommit,
  kCertificate,
  kCompare,
  kNextDifference,
  kPreviousDifference,
  kVerify,
  kOpenRepaired,
  kUndo,
  kCheck,
  kCheckData,
  kCancel,
  kPause,
  kExplain,
  kMesh,
  kCopyReport,
  kCopyName,
  kCopyCommand,
  kSummary,
  kLeftColumn,
  kRightColumn,
  kZoomIn,
  kZoomOut,
  kZoomFit,
  kColourWriter,
  kColourFile,
  kColourFinding,
  kColourOdd,
  kColourGreatest,
  kColourZeros,
  kColourAxis,
  kLookAtTiles,
  kSortRecorded,
  kSortName,
  kSortBytes,
  kSortTiles,
  kSortFindings,
  kFoldAll,
  kUnfoldAll,
  kReload,
  kQuit,
  kShowBytes,
  kShowFindingBytes,
  kNextRecord,
  kPreviousRecord,
  kCopyBytes,
  kShowValues,
  kTable,
  kOpen,
  kBack,
  kForward,
  kSettings,
  kNextTheme,
  kDarkTheme,
  kLightTheme,
  kContrastTheme,
  kScaleUp,
  kScaleDown,
  kScaleReset,
  kExplainError,
  kReport,
  kOpenDemo,
  kTour,
  kExpect,
};

struct ActionRow {
  Action action;
  const char* name;  // an imperative: "Review the repair"
  KeyPress key;      // kNone: palette only
};
std::span<const ActionRow> all_actions();
KeyPress key_of(Action action);

bool is_possible(Action action, const Frame& frame, const DeskState& state);
void run(Action action, Frame& frame, DeskState& state);
// Those that plan, carry out, take back and compare, once they are known to be possible; false: it
// is none of them.
bool run_on_repair(Action action, Frame& frame, DeskState& state);
// The same where something may lie above the desk: what the action has nothing to do with makes
// way.
void choose(Action action, Frame& frame, DeskState& state);
// Keys that no focused text field takes.
void run_keys(Frame& frame, DeskState& state);

// The finding as text for an issue or a chat.
std::string report_text(const Snapshot& snapshot);
// The same look at a terminal.
std::string command_text(const Snapshot& snapshot);

}  // namespace shw
