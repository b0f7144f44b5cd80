// Snapshots with places that are written to, or that a stopped repair left.
#include <utility>

#include "core/session/plan_edits.h"
#include "make/snapshots.h"

namespace shw::make {

std::shared_ptr<Snapshot> with_target(std::shared_ptr<Snapshot> snapshot,
                                      const std::string& typed) {
  if (snapshot->edits == nullptr) {
    PlanEdit edit;
    edit.what = "planned";
    edit.whole = edit.plan = snapshot->plan;
    edit.off.resize(snapshot->plan->operations.size(), false);
    edit.not_in_place = snapshot->not_in_place;
    edit.hash = "5f2b7c1d9e3a";
    snapshot->edits = with_edit(nullptr, std::move(edit));
  }
  verbs::RepairTarget target{typed};
  target.path = typed.empty() ? snapshot->options.checkpoint + "-repaired" : typed;
  target.needs = 3'020'000'000;
  target.free = 48'000'000'000;
  target.plan_of_needs = snapshot->plan;
  snapshot->target = std::make_shared<const verbs::RepairTarget>(std::move(target));
  return snapshot;
}

std::shared_ptr<Snapshot> with_place(const Snapshot& snapshot, verbs::NewFile file,
                                     const std::string& path) {
  auto placed = std::make_shared<Snapshot>(snapshot);
  verbs::NewFilePlace place{file, ""};
  place.path = path;
  place.free = 48'000'000'000;
  placed->place = std::make_shared<const verbs::NewFilePlace>(std::move(place));
  return placed;
}

std::shared_ptr<Snapshot> with_stopped_run(std::shared_ptr<Snapshot> snapshot) {
  verbs::StoppedRun run{snapshot->options.checkpoint + "-repaired.shardwright-partial-7"};
  run.output = snapshot->options.checkpoint + "-repaired";
  run.checkpoint = snapshot->options.checkpoint;
  run.is_of_open = snapshot->checkpoint != nullptr;
  run.files = 12;
  run.bytes = 3'200'000'000;
  run.plan = snapshot->plan == nullptr ? std::make_shared<const Plan>() : snapshot->plan;
  run.fill = "zero";
  verbs::StoppedRuns runs;
  runs.runs = {std::move(run)};
  snapshot->stopped = std::make_shared<const verbs::StoppedRuns>(std::move(runs));
  return snapshot;
}

}  // namespace shw::make
