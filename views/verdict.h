// The one sentence that stands first, and the one thing to do next: a pure function.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "core/session/session.h"
#include "views/actions.h"

namespace shw {

enum class Tone : std::uint8_t { kQuiet, kOk, kBad, kWarn, kUnknown };

struct VerdictText {
  Tone tone = Tone::kQuiet;
  std::string title, detail;
  std::optional<Action> next;
  std::string next_label;
  std::string brief = {};     // where `detail` has no room; empty: the same
  std::string unjudged = {};  // the quiet line below: "Not judged: ..."; may be empty
};
VerdictText verdict_of(const Snapshot& snapshot, const JobState& job, std::size_t marked_tensors);
// What would decide it, in words of the desk: "a spec or another checkpoint" for "--spec or
// --against".
std::string on_desk(std::string text);
// Of the window: "step_9000 - Will not load: 1 cause, 3 tensors - Shardwright".
std::string window_title(const Digest& digest, const JobState& job);
// Of all that runs, what a verdict speaks of: the long job, else the proof.
const JobState& told_job(const JobState& job, std::span<const JobState> beside);

}  // namespace shw
