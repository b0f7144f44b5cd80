// Immutable state shared between threads and views; every change makes a new one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/explain/explain.h"
#include "core/repair/run/estimate.h"
#include "core/session/plan_edits.h"
#include "core/verbs/browse.h"
#include "core/verbs/certificate_list.h"
#include "core/verbs/diff.h"
#include "core/verbs/disk_state.h"
#include "core/verbs/names/paired_names.h"
#include "core/verbs/new_file.h"
#include "core/verbs/plan_file.h"
#include "core/verbs/recent.h"
#include "core/verbs/run/run_numbers.h"
#include "core/verbs/run/run_steps.h"
#include "core/verbs/stopped_runs.h"
#include "core/verbs/ui_report.h"
#include "core/verbs/values/bytes_window.h"
#include "core/verbs/values/next_value.h"
#include "core/verbs/values/save_values.h"
#include "core/verbs/values/slice_values.h"
#include "core/verbs/values/tensor_numbers.h"
#include "core/verbs/values/tile_values.h"
#include "core/verbs/verbs.h"
#include "core/verbs/view_file.h"

namespace shw {

// Result of showing bytes.
struct ShownBytes {
  std::optional<verbs::BytesWindow> window;
  std::optional<Error> error;  // why there are none
};

struct ShownValues {
  std::optional<verbs::SliceValues> values;
  std::optional<verbs::SideBySideValues> side_by_side;  // if a comparison is open
  std::optional<Error> error;                           // why there are none
  std::string not_found;                                // of a search; empty: found, or none
};

// An error message with its possible meanings.
struct ExplainedText {
  std::string text;
  Explanation explanation;
  std::string nearest;  // the most similar known message; may be empty
};
// A command that failed and was not cancelled.
struct FailedCommand {
  std::string verb;
  Error error;
};

// By tensor: statistics of tiles, possibly incomplete.
using TileValuesOf = std::map<TensorId, std::shared_ptr<const verbs::TileValues>>;

struct Snapshot {
  std::uint64_t revision = 0;
  VerbOptions options;                           // of the user: checkpoint, references, fill
  std::shared_ptr<const Checkpoint> checkpoint;  // null: not opened
  std::shared_ptr<const Spec> spec;              // may be null
  std::shared_ptr<const Checkpoint> reference;   // may be null
  bool runs_over_ssh = false;                    // see verbs::ssh_use()
  std::string why_not_over_ssh;                  // a sentence; empty for what is not behind ssh
  bool is_against_itself =
      false;                 // the given reference is the checkpoint itself, so it is not used
  std::optional<Mesh> mesh;  // given by the user
  // Newer steps that RUN/@latest-complete skipped, with the reason: "step_10000: files are
  // missing".
  std::vector<std::string> passed_over;
  // Paths of inputs that did not exist; the checkpoint was opened without them.
  std::vector<std::string> left_aside;
  std::shared_ptr<const CheckReport> report;          // null: not checked
  std::shared_ptr<const Plan> plan;                   // null: not planned
  std::shared_ptr<const PlanEdits> edits;             // edits of the plan
  std::function<Gpus()> gpus;                         // detects GPUs; empty: no detection
  std::shared_ptr<const PlanEdits> edits_before;      // edits of a plan that a later check removed
  std::optional<Error> not_in_place;                  // why the plan cannot run in place
  std::shared_ptr<const RepairEstimate> outlook;      // forecast of the plan; null: not requested
  std::shared_ptr<const verbs::RepairTarget> target;  // output folder; null: not examined
  std::shared_ptr<const verbs::StoppedRuns> stopped;  // unfinished repairs; null: not searched
  bool can_undo = false;                              // repaired in place and not committed
  std::shared_ptr<const RepairResult> repaired;       // null: not applied
  std::shared_ptr<const PlanEdit> executed;           // what made `repaired`; null: not known
  std::shared_ptr<const verbs::CertificateList> certificate;  // of `repaired`
  std::shared_ptr<const Checkpoint> after;                    // the opened result
  // Findings above info in the result, at the depth of the report; null: not applied.
  std::shared_ptr<const std::vector<Finding>> result_findings;
  std::shared_ptr<const VerifyReport> verified;
  std::shared_ptr<const std::vector<std::uint32_t>>
      order;  // filtered and sorted tensors; null: all, as recorded
  std::string filter;
  // The comparison with another checkpoint; null: not requested.
  std::shared_ptr<const verbs::ComparedCheckpoints> compared;
  std::string compared_with;  // as the user named it
  // Corresponding tensors of both checkpoints if two programs wrote them; null: unknown.
  std::shared_ptr<const verbs::PairedNames> paired;
  std::optional<std::size_t> difference;  // selected index in its tensors
  std::optional<TensorId> tensor;         // selected
  std::optional<ChunkId> chunk;           // selected tile
  std::optional<std::size_t> finding;     // selected index in report->findings
  std::string wanted_finding;  // mark of a finding (place_mark.h) that the next check selects
  std::optional<Error> error;  // of the last failed command, until the next job
  // The last failure, until that command begins again; null: none.
  std::shared_ptr<const FailedCommand> failure;
  std::shared_ptr<const ShownBytes> bytes;                  // null: not shown
  std::shared_ptr<const ShownValues> values;                // null: not shown
  std::shared_ptr<const TileValuesOf> tile_values;          // null: none
  std::shared_ptr<const verbs::CheckpointNumbers> numbers;  // of every tensor; null: not read
  std::shared_ptr<const verbs::FolderListing> folder;       // null: browser is closed
  std::shared_ptr<const verbs::RecentPlaces> recent;        // null: not kept
  std::shared_ptr<const verbs::RunSteps> run;               // the steps of a run; null: not shown
  std::shared_ptr<const verbs::RunNumbers> run_numbers;     // of its steps; null: not counted
  std::shared_ptr<const verbs::DiskState> disk;             // files as they were when it was opened
  std::string changed_on_disk;                              // what changed since; empty: nothing
  std::shared_ptr<const ExplainedText> explained;           // null: no message pasted
  std::shared_ptr<const verbs::NewFilePlace> place;         // of a small file; null: not examined
  std::shared_ptr<const verbs::WrittenReport> written;      // the last report; null: none
  std::shared_ptr<const verbs::SavedValues> saved_values;   // the last file; null: none
  std::shared_ptr<const verbs::WrittenReport> saved_view;   // the last file; null: none
  std::shared_ptr<const verbs::WrittenReport> hashes;       // the last file; null: none
  // Views saved in this session, in order; reports draw those of the open checkpoint. Null: none.
  std::shared_ptr<const std::vector<verbs::SavedView>> saved_views;
  std::shared_ptr<const std::vector<verbs::Pin>> pins;  // of the open checkpoint; null: none
  bool can_go_back = false, can_go_forward = false;
};

// Statistics of a tensor's tiles; null: none.
const verbs::TileValues* tile_values_of(const Snapshot& snapshot, TensorId tensor);

// The snapshot without a checkpoint, for opening another one.
Snapshot blank(const Snapshot& before);

// The unfinished repair to offer first; null: there is none.
const verbs::StoppedRun* first_stopped_run(const Snapshot& snapshot);

// True if the repair wrote another checkpoint, so that the open one is still damaged.
bool is_repaired_elsewhere(const Snapshot& snapshot);

// True if the repair changed the files of the open checkpoint, which was read before that.
bool is_repaired_in_place(const Snapshot& snapshot);

// The plan that made `repaired`, which a later check keeps; null if that is not known.
const Plan* executed_plan(const Snapshot& snapshot);

// True if the plan has made `repaired`: it is neither edited nor applied any more.
bool is_plan_executed(const Snapshot& snapshot);

// True if the plan repairs nothing and writes the checkpoint in another form.
bool is_rewrite_only_plan(const Snapshot& snapshot);

// True if `repaired` is the checkpoint in another form, and nothing in it was repaired.
bool is_rewrite_only_result(const Snapshot& snapshot);

// Converts to the arguments of verbs.
verbs::Opened verb_inputs(const Snapshot& snapshot);

}  // namespace shw
