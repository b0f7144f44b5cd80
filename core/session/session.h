// One user's work on one checkpoint. Commands are the only input, Session::apply the
// only mutator; immutable Snapshots are exchanged between threads and drawn by the
// views.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/progress.h"
#include "core/session/commands.h"
#include "core/session/snapshot.h"

namespace shw {

// What stopping a job leaves.
enum class StopEffect : std::uint8_t {
  kNothingWritten,   // it only reads
  kOutputDiscarded,  // its unfinished file is removed
  kUnchanged,        // a cancelled repair in place leaves the checkpoint unchanged
  kResumable,        // the finished files stay; the repair can be resumed or discarded
  kFinished          // it is not stopped halfway
};

struct JobState {
  bool running = false;
  std::string title;  // "Verifying bytes"
  Phase phase = Phase::kIdle;
  std::uint64_t done = 0, total = 0;  // of the phase
  bool in_bytes = false;
  double seconds = 0;          // since the job began
  bool stopping = false;       // cancellation was requested
  bool paused = false;         // paused; times stand still
  double phase_seconds = 0;    // since the phase was first seen
  bool is_proof_done = false;  // the result is proved and is now being checked
  // Share of the stages in the threads' time.
  struct StageShare {
    std::uint64_t bytes = 0;
    double seconds = 0;
  };
  std::array<StageShare, kStages> stages = {};
  std::size_t threads = 0;  // number of threads
  bool looking = false;     // reading file contents: progress in elements
  std::uint64_t looked = 0, to_look = 0;
  std::string_view verb = {};  // of its command
  bool changes_open = false;   // writes the files of the open checkpoint
  StopEffect stop_effect = StopEffect::kNothingWritten;
  std::uint64_t bytes_in_all = 0;  // read or written since the job began; only grows
  double part = 0;                 // of the whole job, as far as it is known; only grows
};

// A verdict as recent places keep it: "clean", "warnings", "findings" or "undecided", and a line.
struct RecentVerdict {
  std::string verdict, summary;
};
using MakeRecentVerdict = std::function<RecentVerdict(const Snapshot&)>;

class Session {
 public:
  Session();
  ~Session();  // cancels and waits

  // Executes a command. Cheap ones immediately; opening, checking, planning and repairing on one
  // thread in order; read-only jobs (proof, comparison, data check) on a thread each; filter and
  // file contents on two more. Never blocks.
  void apply(Command command);
  // Commands that depend on each other (open, then check): if one fails, the following are
  // dropped.
  void apply(std::vector<Command> commands);
  // Keeps opened checkpoints and their last verdict in a file: read now, written after each command
  // that changes the verdict. `verdict`: as it is shown; empty: that of the check. Called on any
  // thread.
  void set_recent_places_file(std::string file, MakeRecentVerdict verdict = nullptr);
  // Sets the GPU detection; without it repairs use the CPU.
  void set_gpu_detection(std::function<Gpus()> gpus);
  // Waits until all commands are done or paused, for the command line, tests and
  // screenshots.
  void wait();

  std::shared_ptr<const Snapshot> snapshot() const;
  JobState job() const;                           // the long job
  std::vector<JobState> concurrent_jobs() const;  // read-only jobs in start order
  // Called on any thread after a snapshot was published.
  void on_change(std::function<void()> callback);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shw
