// One person's work on one checkpoint. A Command is all that a person can do; Session::apply is the
// only thing that changes anything; a Snapshot is what the threads hand each other and what the
// views draw. The desktop, the headless program and the tests are the same session.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "core/base/progress.h"
#include "core/model/checkpoint.h"
#include "core/repair/apply.h"
#include "core/repair/plan.h"
#include "core/rules/check.h"
#include "core/spec/spec.h"

namespace shw {

struct Snapshot {
  std::uint64_t revision = 0;
  std::string path;
  std::shared_ptr<const Checkpoint> checkpoint;  // null until opened
  std::shared_ptr<const Spec> spec;              // null without
  std::shared_ptr<const Checkpoint> reference;   // what it is held against; null without
  std::string against;                           // where that was opened
  std::optional<Mesh> mesh;                      // what the person said about the ranks
  std::shared_ptr<const CheckReport> report;     // null until checked
  std::shared_ptr<const Plan> plan;              // null until planned
  std::string fill;                              // what the plan was asked to fill with
  std::shared_ptr<const RepairResult> repaired;  // null until applied
  std::shared_ptr<const Checkpoint> after;       // the repaired checkpoint, opened
  std::shared_ptr<const VerifyReport> verified;
  std::shared_ptr<const std::vector<std::uint32_t>>
      order;  // tensors that the filter lets through, sorted; null: all, as recorded
  std::string filter;
  std::optional<TensorId> tensor;      // selected
  std::optional<ChunkId> chunk;        // selected tile
  std::optional<std::size_t> finding;  // selected, index into report->findings
  std::optional<Error> error;          // of the last command that failed
};

enum class SortKey : std::uint8_t { kRecorded, kName, kBytes, kChunks, kFindings };

struct OpenCommand {
  std::string path;
  std::string spec;
  std::string against = {};
};  // spec and against may be empty
struct CheckCommand {
  std::optional<Depth> depth;
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
  std::optional<ChunkId> chunk;
};
struct SelectFindingCommand {
  std::size_t index = 0;
};
struct FilterCommand {
  std::string text;
};  // see filter.h
struct SortCommand {
  SortKey key = SortKey::kRecorded;
  bool descending = false;
};
using Command = std::variant<OpenCommand, CheckCommand, MeshCommand, PlanCommand, RepairCommand,
                             VerifyCommand, UndoCommand, CancelCommand, SelectTensorCommand,
                             SelectChunkCommand, SelectFindingCommand, FilterCommand, SortCommand>;

// One line of a replay script: "open PATH [spec PATH]", "check data", "mesh dp=4,tp=2", "plan",
// "repair out DIR", "repair in-place", "verify", "undo", "cancel", "select FQN", "tile N", "finding
// N", "filter TEXT", "sort bytes desc", ...
std::string to_text(const Command& command);
Result<Command> parse_command(std::string_view line);

struct JobState {
  bool running = false;
  std::string title;  // "Verifying bytes"
  Phase phase = Phase::kIdle;
  std::uint64_t done = 0, total = 0;
  bool in_bytes = false;
  double seconds = 0;  // since the job began
};

class Session {
 public:
  Session();
  ~Session();  // cancels and waits

  // Carries a command out. Cheap ones at once; opening, checking, planning, repairing, verifying,
  // filtering on the session's own thread, in order. Never blocks.
  void apply(Command command);
  // Commands that were given for each other's results (open, then check): none is left standing
  // when one before it fails, however soon that is.
  void apply(std::vector<Command> commands);
  // Waits until nothing is left to do: the headless program, tests, screenshots.
  void wait();

  std::shared_ptr<const Snapshot> snapshot() const;
  JobState job() const;
  // Called on any thread after a snapshot was published; the window wakes up on it.
  void on_change(std::function<void()> callback);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shw
