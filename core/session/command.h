// What a person can ask for, as data: a click, a key, a line of a replay and the headless program
// mean the same thing.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>

#include "core/session/snapshot.h"
#include "core/verbs/sort.h"

namespace shw {

struct OpenCommand {
  std::string path;
  std::string spec = {};  // these three may be empty
  std::string against = {};
  std::string mesh = {};    // "dp=4,tp=2"
  std::string tensor = {};  // to be selected; may be empty, and need not be there
};
struct CheckCommand {
  std::optional<Depth> depth = {};
};
struct MeshCommand {
  std::string text;  // "dp=4,tp=2"; empty: as inferred
};
struct PlanCommand {
  std::string fill = {};  // for what is lost: "zero", "cast", "from:CHECKPOINT"; empty: as advised
};
struct RepairCommand {
  ApplyOptions options;
};
struct VerifyCommand {};
struct UndoCommand {};
// The job of a verb ("compare"), or all that runs where none is named.
struct CancelCommand {
  std::string verb = {};
};
struct SelectTensorCommand {
  std::string fqn;
};
struct SelectChunkCommand {
  std::optional<ChunkId> chunk = {};
};
struct SelectFindingCommand {
  std::size_t index = 0;
};
struct FilterCommand {
  std::string text = {};  // see core/verbs/filter.h
};
struct SortCommand {
  SortKey key = SortKey::kRecorded;
  bool descending = false;
};
// One step of the plan, and all that go with it.
struct StepCommand {
  std::size_t step = 0;  // from 0
  bool on = false;
};
struct PlanUndoCommand {};
struct PlanRedoCommand {};
struct EditPlanCommand {
  std::string json;
};
struct SavePlanCommand {
  std::string path;
};
struct LoadPlanCommand {
  std::string path;
};
struct DryRunCommand {};
struct TargetCommand {
  std::string path = {};  // where a repair would go; empty: the default
};
// Of what a stopped or killed repair left: goes on with it, or takes it away.
struct ResumeCommand {
  std::string folder;
};
struct RollBackCommand {
  std::string folder;
};
struct CommitCommand {};  // a repair in place stays: undo is given up
// Bytes of a file, with what they are: closed, those of the selected tile, of a place, or a step.
struct BytesCommand {
  enum class Go : std::uint8_t { kClose, kTile, kFinding, kAt, kNext, kPrevious };
  Go go = Go::kTile;
  std::string file = {};  // of kAt; empty: the one that is looked at
  std::uint64_t at = 0;
};
// Numbers of the selected tensor.
struct ValuesCommand {
  bool close = false;
  verbs::ValuesAsk ask = {};
};
// A folder is listed, and what lies in it looked at.
struct BrowseCommand {
  std::string folder;  // "~/runs/"; empty: where the program runs
};
// Back (-1) or forward (1) through what was opened and selected.
struct GoCommand {
  int step = -1;
};
// What is open against another checkpoint.
struct CompareCommand {
  std::string path;
  bool data = false;  // every value too
};
struct DifferenceCommand {
  std::size_t index = 0;
};
// What an error message can mean.
struct ExplainErrorCommand {
  std::string text;
};
// A page about what is open and selected.
struct ReportCommand {
  std::string path = {};  // a file, or a folder; empty: beside the checkpoint
};
// The demo, made in a folder and opened.
struct DemoCommand {
  std::string folder;
};
// What the numbers of each tile of a tensor are like, tile after tile, until all are looked at or
// another tensor is selected.
struct TileValuesCommand {
  bool stop = false;
  std::string fqn = {};  // empty: the selected one
};
// Likewise: held at its next step, and let go on.
struct PauseCommand {
  std::string verb = {};
};
struct ContinueCommand {
  std::string verb = {};
};
using Command =
    std::variant<OpenCommand, CheckCommand, MeshCommand, PlanCommand, RepairCommand, VerifyCommand,
                 UndoCommand, CancelCommand, SelectTensorCommand, SelectChunkCommand,
                 SelectFindingCommand, FilterCommand, SortCommand, StepCommand, PlanUndoCommand,
                 PlanRedoCommand, EditPlanCommand, SavePlanCommand, LoadPlanCommand, DryRunCommand,
                 TargetCommand, ResumeCommand, RollBackCommand, CommitCommand, BytesCommand,
                 ValuesCommand, BrowseCommand, GoCommand, CompareCommand, DifferenceCommand,
                 ExplainErrorCommand, ReportCommand, DemoCommand, TileValuesCommand, PauseCommand,
                 ContinueCommand>;

// The command as the one that its row says it is.
template <class C>
const C& as(const Command& command) {
  assert(std::holds_alternative<C>(command));
  return *std::get_if<C>(&command);
}

// What becomes of the snapshot.
using Change = std::function<void(Snapshot&)>;

// The same checkpoint again, or another one that belongs to it (the repaired one), with all that
// the person said beside it.
OpenCommand open_again(const Snapshot& snapshot, const std::string& path);

}  // namespace shw
