// The actions that a key, a button or the command palette can trigger.
#pragma once

#include <cstdint>
#include <string>

#include "views/ui_state.h"

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
  kNamesMap,
  kLearnNames,
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
  kTensorNumbers,
  kRanksPerNode,
  kLeftColumn,
  kRightColumn,
  kZoomIn,
  kZoomOut,
  kZoomFit,
  kPreviousSlice,
  kNextSlice,
  kColourWriter,
  kColourFile,
  kColourFinding,
  kColourOdd,
  kColourGreatest,
  kColourZeros,
  kColourAxis,
  kReadTileValues,
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
  kGoToIndex,
  kNextValue,
  kSaveNpy,
  kSaveCsv,
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
  kSaveView,
  kHashes,
  kPins,
  kExportPng,
  kExportSvg,
  kOpenDemo,
  kTour,
  kExpect,
  kWriteAs,
  kRun,
  kRunNumbers,
  kOpenInTab,
  kOpenReference,
  kNextTab,
  kPreviousTab,
  kShowSameTensorInNextTab,
  kCloseTab,
};

inline constexpr std::size_t kActionCount = static_cast<std::size_t>(Action::kCloseTab) + 1;

// Whether the key of an action works while a panel covers the window.
enum class OverlayPolicy : std::uint8_t {
  kBlocked,          // not while a panel is open: the action affects what panels hide
  kRepairPanelOnly,  // of the repair panel, where the effect is seen: from elsewhere it opens it
  kAlways,           // over every panel: the effect stays visible
  kReplaces,         // closes the open panel and shows its own
  // Writes files, so it works only while the repair panel shows the numbers; from elsewhere it
  // opens that panel.
  kNeedsRepairPanel,
};

// A row of the action table. The rows are grouped by topic in finding_actions.cpp,
// view_actions.cpp, repair_actions.cpp, content_middle.cpp, browser_steps.cpp, panel_actions.cpp
// and tab_strip.cpp.
struct ActionRow {
  Action action;
  const char* name;  // imperative: "Review the repair"
  KeyPress key;      // kNone: only in the palette
  bool (*is_possible)(const Frame& frame, const UiState& state);
  void (*run)(Frame& frame, UiState& state);
  OverlayPolicy overlay = OverlayPolicy::kBlocked;
  // Question that the user must confirm first, in one or two sentences; empty: none.
  std::string (*question)(const Frame& frame) = nullptr;
};

}  // namespace shw
