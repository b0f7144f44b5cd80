// All that a person can do, one table row each: a click, a key, a line of a replay and the headless
// program mean the same thing.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "core/base/progress.h"
#include "core/session/snapshot.h"
#include "core/verbs/sort.h"

namespace shw {

struct OpenCommand {
  std::string path;
  std::string spec = {};  // these three may be empty
  std::string against = {};
  std::string mesh = {};  // "dp=4,tp=2"
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
struct CancelCommand {};
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
using Command = std::variant<OpenCommand, CheckCommand, MeshCommand, PlanCommand, RepairCommand,
                             VerifyCommand, UndoCommand, CancelCommand, SelectTensorCommand,
                             SelectChunkCommand, SelectFindingCommand, FilterCommand, SortCommand>;

// The command as the one that its row says it is.
template <class C>
const C& as(const Command& command) {
  assert(std::holds_alternative<C>(command));
  return *std::get_if<C>(&command);
}

// What becomes of the snapshot.
using Change = std::function<void(Snapshot&)>;

// Who carries it out.
enum class Lane : std::uint8_t {
  kNow,   // the caller, at once: a change of the selection
  kJob,   // the thread of long jobs, in order
  kList,  // the thread of the list: only the last filter and the last order matter
};

struct CommandRow {
  std::string_view verb;   // the first word of its text form
  std::string_view form;   // "check [metadata|headers|data]": what a person may type
  std::string_view title;  // "Checking": what the job bar says; empty where it takes no time
  Lane lane;
  // What stands after the verb; nothing where it cannot be read.
  std::optional<Command> (*parse)(std::string_view rest);
  std::string (*print)(const Command& command);
  // Pure: from what is there to what becomes of it. Null for cancel, filter and sort, which are the
  // session's own.
  Result<Change> (*run)(const Snapshot& before, const Command& command, Progress* progress);
};

// In the order of Command's alternatives.
std::span<const CommandRow> command_table();
const CommandRow& row_of(const Command& command);

// One line of a replay script: "open PATH [spec PATH]", "check data", "repair out DIR", ...
std::string to_text(const Command& command);
Result<Command> parse_command(std::string_view line);

// The same checkpoint again, or another one that belongs to it (the repaired one), with all that
// the person said beside it.
OpenCommand open_again(const Snapshot& snapshot, const std::string& path);

// After a check that found something: the plan that the next action reviews, and the tensors that
// are concerned. Empty where nothing is to be done.
std::vector<Command> follow_up(const Snapshot& snapshot);

}  // namespace shw
