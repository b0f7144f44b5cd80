// What a key, a button or the command palette can do, one by one.
#pragma once

#include <cstdint>

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

inline constexpr std::size_t kActionCount = static_cast<std::size_t>(Action::kExpect) + 1;

// Where its key works while a panel lies above the desk.
enum class Above : std::uint8_t {
  kNothing,    // it touches what the panel hides
  kTheRepair,  // above the repair's panel, which it is of
  kEach,       // above any: what it does is seen all the same
  kInstead,    // it takes the panel's place
};

// All that is known about an action. The rows stand by what they are about in finding_actions.cpp,
// view_actions.cpp, repair_actions.cpp, look_middle.cpp, browser_steps.cpp and habit_actions.cpp.
struct ActionRow {
  Action action;
  const char* name;  // an imperative: "Review the repair"
  KeyPress key;      // kNone: palette only
  bool (*is_possible)(const Frame& frame, const DeskState& state);
  void (*run)(Frame& frame, DeskState& state);
  Above above = Above::kNothing;
};

}  // namespace shw
