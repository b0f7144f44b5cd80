// One person's work on one checkpoint. A Command is all that a person can do; Session::apply is the
// only thing that changes anything; a Snapshot is what the threads hand each other and what the
// views draw.
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

struct JobState {
  bool running = false;
  std::string title;  // "Verifying bytes"
  Phase phase = Phase::kIdle;
  std::uint64_t done = 0, total = 0;
  bool in_bytes = false;
  double seconds = 0;        // since the job began
  bool stopping = false;     // somebody has asked it to stop
  bool paused = false;       // held until somebody lets it go on; the times stand still
  double phase_seconds = 0;  // since the phase was first seen
  bool past_proof = false;   // the result is proved and looked at
  // What the threads have spent their time on, all of them together.
  struct StageShare {
    std::uint64_t bytes = 0;
    double seconds = 0;
  };
  std::array<StageShare, kStages> stages = {};
  std::size_t threads = 0;  // that share them
  bool looking = false;     // beside it, into a file: how many of how many elements
  std::uint64_t looked = 0, to_look = 0;
  std::string_view verb = {};  // of its command
  bool writes = false;         // into files that stay
};

class Session {
 public:
  Session();
  ~Session();  // cancels and waits

  // Carries a command out. Cheap ones at once; opening, checking, planning and repairing on a
  // thread of the session's own, in order; what only reads (a proof, a comparison, a look at every
  // byte) on one each beside it; filtering and looks into files on two more. Never blocks.
  void apply(Command command);
  // Commands that were given for each other's results (open, then check): none is left standing
  // when one before it fails, however soon that is.
  void apply(std::vector<Command> commands);
  // What was opened is kept in a file, with its last verdict: read now, written after each check.
  void remember_in(std::string file);
  // How GPUs are looked for; without it every repair is made on the CPU.
  void look_for_gpus_with(std::function<Gpus()> gpus);
  // Waits until nothing is left to do, or what there is has been paused: the headless program,
  // tests, screenshots.
  void wait();

  std::shared_ptr<const Snapshot> snapshot() const;
  JobState job() const;                           // the long job
  std::vector<JobState> concurrent_jobs() const;  // those that only read, in the order they began
  // Called on any thread after a snapshot was published; the window wakes up on it.
  void on_change(std::function<void()> callback);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shw
