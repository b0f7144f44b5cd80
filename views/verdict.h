// The headline verdict and the next action: a pure function.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "core/session/session.h"
#include "views/actions.h"
#include "views/digest.h"
#include "views/open_tabs.h"

namespace shw {

struct VerdictText {
  Tone tone = Tone::kQuiet;
  std::string title, detail;
  std::optional<Action> next;
  std::string next_label;
  std::string brief = {};     // used if `detail` does not fit; empty: `detail`
  std::string unjudged = {};  // the line "Not checked: ..." below; may be empty
};
// `about` must belong to the snapshot.
VerdictText verdict_of(const Snapshot& snapshot, const JobState& job, const FindingEffects& about);
// The verdict of the open checkpoint for recent places, as the banner shows it: that of a result
// elsewhere is the result's.
RecentVerdict verdict_to_remember(const Snapshot& snapshot);
// Replaces option names by window terms: "a spec or another checkpoint" for "--spec or
// --against".
std::string with_desktop_terms(std::string text);
// Title of the window: "step_9000 - Will not load: 1 cause, 3 tensors - Shardwright".
std::string window_title(const Digest& digest, const JobState& job);
// The job that the verdict describes: the long job, otherwise the proof.
const JobState& shown_job(const JobState& job, std::span<const JobState> concurrent_jobs);

}  // namespace shw
