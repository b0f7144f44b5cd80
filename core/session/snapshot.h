// What the threads hand each other and what the views draw: immutable, a new one for every change.
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
#include "core/repair/run/outlook.h"
#include "core/session/plan_edits.h"
#include "core/verbs/browse.h"
#include "core/verbs/bytes_window.h"
#include "core/verbs/certificate_list.h"
#include "core/verbs/diff.h"
#include "core/verbs/plan_file.h"
#include "core/verbs/recent.h"
#include "core/verbs/slice_values.h"
#include "core/verbs/tile_values.h"
#include "core/verbs/ui_report.h"
#include "core/verbs/verbs.h"

namespace shw {

// What a look into a file has brought.
struct BytesLook {
  std::optional<verbs::BytesWindow> window;
  std::optional<Error> error;  // why there is none
};

struct ValuesLook {
  std::optional<verbs::SliceValues> values;
  std::optional<verbs::SideBySideValues> side_by_side;  // where another checkpoint is compared with
  std::optional<Error> error;                           // why there are none
};

// An error message, and what it can mean.
struct ExplainedText {
  std::string text;
  Explanation explanation;
  std::string nearest;  // where nothing is known about it: a message that is; may be empty
};
// Of the tensors whose tiles were looked at; each may be a part of its tiles.
using TileValuesOf = std::map<TensorId, std::shared_ptr<const verbs::TileValues>>;

struct Snapshot {
  std::uint64_t revision = 0;
  VerbOptions options;  // by the person: what was opened, beside what, and how it is to be filled
  std::shared_ptr<const Checkpoint> checkpoint;  // null until opened
  std::shared_ptr<const Spec> spec;              // null without
  std::shared_ptr<const Checkpoint> reference;   // what it is held against; null without
  bool is_against_itself = false;  // what it was to be held against is itself: nothing is held
  std::optional<Mesh> mesh;        // what the person said about the ranks
  // Newer steps that RUN/@latest-complete left alone: "step_10000: files are gone".
  std::vector<std::string> passed_over;
  std::shared_ptr<const CheckReport> report;      // null until checked
  std::shared_ptr<const Plan> plan;               // null until planned
  std::shared_ptr<const PlanEdits> edits;         // of the plan; null until planned
  std::function<Gpus()> gpus;                     // looks for them; empty: nobody can
  std::shared_ptr<const PlanEdits> edits_before;  // of a plan that a later check took away
  std::optional<Error> not_in_place;             // of a plan: why it cannot be carried out in place
  std::shared_ptr<const RepairOutlook> outlook;  // of the plan; null until asked for
  std::shared_ptr<const verbs::RepairTarget> target;  // where it would go; null until looked at
  bool can_undo = false;  // what is open was repaired in place, and that is not committed
  std::shared_ptr<const RepairResult> repaired;               // null until applied
  std::shared_ptr<const verbs::CertificateList> certificate;  // of `repaired`
  std::shared_ptr<const Checkpoint> after;                    // the repaired checkpoint, opened
  // What is still found above info in it, as deep as the report looked; null until applied.
  std::shared_ptr<const std::vector<Finding>> still_wrong;
  std::shared_ptr<const VerifyReport> verified;
  std::shared_ptr<const std::vector<std::uint32_t>>
      order;  // tensors that the filter lets through, sorted; null: all, as recorded
  std::string filter;
  // Beside another checkpoint; null until asked for.
  std::shared_ptr<const verbs::ComparedCheckpoints> compared;
  std::string compared_with;                            // as the person named it
  std::optional<std::size_t> difference;                // selected, index into its tensors
  std::optional<TensorId> tensor;                       // selected
  std::optional<ChunkId> chunk;                         // selected tile
  std::optional<std::size_t> finding;                   // selected, index into report->findings
  std::optional<Error> error;                           // of the last command that failed
  std::shared_ptr<const BytesLook> bytes;               // null: nobody looks at bytes
  std::shared_ptr<const ValuesLook> values;             // likewise
  std::shared_ptr<const TileValuesOf> tile_values;      // null: no tensor's were
  std::shared_ptr<const verbs::FolderListing> folder;   // null: nobody looks for a checkpoint
  std::shared_ptr<const verbs::RecentPlaces> recent;    // null: nothing is remembered
  std::shared_ptr<const ExplainedText> explained;       // null: no message was pasted
  std::shared_ptr<const verbs::WrittenReport> written;  // the last one; null until asked for
  bool can_go_back = false, can_go_forward = false;
};

// What is known of a tensor's tiles; null: nothing.
const verbs::TileValues* tile_values_of(const Snapshot& snapshot, TensorId tensor);

// Nothing is open: what is left of a snapshot when another checkpoint is opened.
Snapshot blank(const Snapshot& before);

// As the verbs take it.
verbs::Opened opened_in(const Snapshot& snapshot);

}  // namespace shw
