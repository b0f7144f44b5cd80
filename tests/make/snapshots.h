// Snapshots made by hand, one for every state of the desktop: without files or a session.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/session/session.h"

namespace shw::make {

// The demo: 64 ranks, about 1,142 tensors, three of them with the placements from before a
// transpose.
std::shared_ptr<Snapshot> demo();
std::shared_ptr<Snapshot> demo_planned();
// As the session leaves a plan: with its edits, and with the output folder examined. `typed`: as in
// the panel; empty: the default name.
std::shared_ptr<Snapshot> with_target(std::shared_ptr<Snapshot> snapshot,
                                      const std::string& typed = {});
// With the place of a small file examined, as it is for an empty path.
std::shared_ptr<Snapshot> with_place(const Snapshot& snapshot, verbs::NewFile file,
                                     const std::string& path);
// With an unfinished repair beside it, whose journal has the snapshot's plan, if it has one.
std::shared_ptr<Snapshot> with_stopped_run(std::shared_ptr<Snapshot> snapshot);
// With an explained error message and a report that was written to that path.
std::shared_ptr<Snapshot> demo_explained(const std::string& report);
std::shared_ptr<Snapshot> demo_repaired(bool verified);
std::shared_ptr<Snapshot> healthy();
// Missing and overlapping boxes, a missing file, several findings, no remedy.
std::shared_ptr<Snapshot> damaged();
std::shared_ptr<Snapshot> lossy();
std::shared_ptr<Snapshot> many_tensors(std::uint32_t count, std::uint32_t tiles_each = 2);
// One tensor of side * side tiles, of which the middle one has no bytes.
std::shared_ptr<Snapshot> many_tiles(std::int64_t side);
std::shared_ptr<Snapshot> cannot_open();
std::shared_ptr<Snapshot> opening();
// Every kind of shape that pictures must support: scalars, one dim, empty tensors, five dims, no
// chunks.
std::shared_ptr<Snapshot> odd_shapes();
// A view of the bytes at an archive's end: a header, a payload of float32, a descriptor.
std::shared_ptr<Snapshot> with_bytes(std::shared_ptr<Snapshot> snapshot,
                                     std::optional<verbs::BytesRecord> record = {});
// A view of the chosen tensor's values, with a NaN and an infinity among them.
std::shared_ptr<Snapshot> with_values(std::shared_ptr<Snapshot> snapshot);

// With another program's checkpoint and a map to the tensors of this one: a row that joins and
// stacks, one that only renames, one with a differing tensor, and tensors without a row.
std::shared_ptr<Snapshot> with_names(std::shared_ptr<Snapshot> snapshot, std::size_t rows = 6);

// A folder of steps named step_100, step_200, ...; `counted`: with norms by module, and NaN from
// step_300 on in layers.5.mlp.
std::shared_ptr<Snapshot> run_of_steps(std::size_t steps, std::size_t layers, bool counted);

struct State {
  std::string name;
  std::shared_ptr<Snapshot> snapshot;
  JobState job;
};
std::vector<State> all_states();

}  // namespace shw::make
