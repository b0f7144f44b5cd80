// Commands as data: clicks, keys, replay lines and the command line use the same
// ones.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>

#include "core/session/snapshot.h"
#include "core/verbs/names/sort.h"
#include "core/verbs/written_as.h"

namespace shw {

struct OpenCommand {
  std::string path;
  std::string spec = {};  // these three may be empty
  std::string against = {};
  std::string mesh = {};    // "dp=4,tp=2"
  std::string tensor = {};  // tensor to select; may be empty or missing
  // Marks (place_mark.h) of a tile of that tensor and of a finding of the next check; may be empty
  // or missing.
  std::string tile = {}, finding = {};
  // True for a command from a list or a file: a missing spec or reference is skipped with a note.
  bool remembered = false;
};
struct CheckCommand {
  std::optional<Depth> depth = {};
};
struct MeshCommand {
  std::string text;  // "dp=4,tp=2"; empty: inferred
};
struct PlanCommand {
  std::string fill = {};             // "zero", "cast", "from:CHECKPOINT"; empty: as advised
  bool keeps_existing_plan = false;  // keeps a plan that was made meanwhile
  std::string then = {};             // a step after the repair, as --then takes it; empty: none
  bool on_remote_host = false;  // on the machine of the checkpoint, which reads every byte again
};
struct RepairCommand {
  ApplyOptions options;
  // PlanEdit::hash of the plan that was shown: any other plan is refused. Empty: the present plan.
  std::string plan = {};
};
struct VerifyCommand {};
struct UndoCommand {};
// Cancels the job of a verb ("compare"), or all jobs if none is named.
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
  std::string text = {};  // see core/verbs/names/filter.h
};
struct SortCommand {
  SortKey key = SortKey::kRecorded;
  bool descending = false;
};
// Switches one step of the plan and its dependent steps.
struct StepCommand {
  std::size_t step = 0;  // counted from 0
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
  std::string path = {};  // output folder; empty: the default
};
// Resumes or removes the unfinished result of a stopped or killed repair.
struct ResumeCommand {
  std::string folder;
};
struct RollBackCommand {
  std::string folder;
};
struct CommitCommand {};  // accepts a repair in place and deletes its undo data
// Shows bytes of a file: of the selected tile or finding, at an offset, of the next or previous
// record; or closes the view.
struct BytesCommand {
  enum class Go : std::uint8_t { kClose, kTile, kFinding, kAt, kNext, kPrevious, kFind };
  Go go = Go::kTile;
  std::string file = {};  // for kAt; empty: the current file
  std::uint64_t at = 0;
  std::string pattern = {};  // for kFind (verbs/bytes_search.h)
};
// Shows values of the selected tensor.
struct ValuesCommand {
  bool close = false;
  verbs::ValuesRequest ask = {};
  std::optional<verbs::SearchedValue> next = {};  // the next one in the slice that is shown
};
// Writes the shown values into a file.
struct SaveValuesCommand {
  verbs::ValuesFile kind = verbs::ValuesFile::kNpy;
  std::string path = {};  // a file or folder; empty: next to the checkpoint
};
// Lists a folder and examines its entries.
struct BrowseCommand {
  std::string folder;  // "~/runs/"; empty: the working directory
};
// Moves back (-1) or forward (1) in the history of opened checkpoints and selected tensors.
struct GoCommand {
  int step = -1;
};
// Compares the open checkpoint with another one.
struct CompareCommand {
  std::string path;
  bool data = false;  // also compares values
};
struct DifferenceCommand {
  std::size_t index = 0;
};
// Explains an error message.
struct ExplainErrorCommand {
  std::string text;
};
// Examines where a small file would be written.
struct PlaceCommand {
  verbs::NewFile file = verbs::NewFile::kReport;
  std::string path = {};  // a new file or a folder; empty: next to the checkpoint
};
// Saves a report about the open checkpoint.
struct ReportCommand {
  std::string path = {};  // a file or folder; empty: next to the checkpoint
};
// Creates the demo checkpoint and opens it.
struct DemoCommand {
  std::string folder;
};
// Computes statistics for each tile of a tensor, until all are done or another tensor is
// selected.
struct TileValuesCommand {
  bool stop = false;
  std::string fqn = {};  // empty: the selected one
};
// Pauses the job of a verb or all jobs at their next step, or resumes them.
struct PauseCommand {
  std::string verb = {};
};
struct ContinueCommand {
  std::string verb = {};
};
// Lists the steps of a run and examines them one by one; empty: the run that is shown.
struct RunCommand {
  std::string folder = {};
};
// Checks whether another process changed the files of the open checkpoint.
struct DiskCommand {};
// Saves the current view (verbs/view_file.h).
struct SaveViewCommand {
  std::string path = {};  // a file or folder; empty: next to the checkpoint
};
// Writes the hash of every tensor into a file.
struct HashCommand {
  std::string path = {};  // a file or folder; empty: next to the checkpoint
};
// Computes norms and NaN of every step of the run that is shown; steps that were already read are
// not read again.
struct RunNumbersCommand {};
// Pins the selected tensor and tile.
struct PinCommand {
  std::string note = {};
};
struct UnpinCommand {
  std::size_t pin = 0;
};
// Computes norm, zeros and NaN of every float tensor of the open checkpoint.
struct TensorNumbersCommand {};
// Finds, by their elements, which tensors of the open checkpoint correspond to which of another
// one.
struct LearnCommand {
  std::string path;
};
// Makes a plan that writes the open checkpoint in another format, dtype or mesh.
struct WriteAsCommand {
  verbs::OutputForm wanted;
};
using Command =
    std::variant<OpenCommand, CheckCommand, MeshCommand, PlanCommand, RepairCommand, VerifyCommand,
                 UndoCommand, CancelCommand, SelectTensorCommand, SelectChunkCommand,
                 SelectFindingCommand, FilterCommand, SortCommand, StepCommand, PlanUndoCommand,
                 PlanRedoCommand, EditPlanCommand, SavePlanCommand, LoadPlanCommand, DryRunCommand,
                 TargetCommand, ResumeCommand, RollBackCommand, CommitCommand, BytesCommand,
                 ValuesCommand, BrowseCommand, GoCommand, CompareCommand, DifferenceCommand,
                 ExplainErrorCommand, ReportCommand, DemoCommand, TileValuesCommand, PauseCommand,
                 ContinueCommand, RunCommand, DiskCommand, SaveValuesCommand, SaveViewCommand,
                 RunNumbersCommand, LearnCommand, WriteAsCommand, TensorNumbersCommand, PinCommand,
                 UnpinCommand, HashCommand, PlaceCommand>;

// The command as type C, as guaranteed by its row.
template <class C>
const C& as(const Command& command) {
  assert(std::holds_alternative<C>(command));
  return *std::get_if<C>(&command);
}

// A modification of the snapshot.
using Change = std::function<void(Snapshot&)>;

// The command with paths that may be shown and recorded: passwords and signatures are removed and
// remembered in this process.
Command without_passwords(Command command);

// Reopens the checkpoint, or opens a related one (the repaired one), with the same
// options.
OpenCommand reopen_command(const Snapshot& snapshot, const std::string& path);

}  // namespace shw
