// Snapshots made by hand, one for every state that the desktop can be in: no files, no session.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/session/session.h"

namespace shw::make {

// The demo: 64 ranks, about 1,142 tensors, three of them written with the placements from before a
// transpose.
std::shared_ptr<Snapshot> demo();
std::shared_ptr<Snapshot> demo_planned();
// With an error message that was explained, and a report that was written there.
std::shared_ptr<Snapshot> demo_explained(const std::string& report);
std::shared_ptr<Snapshot> demo_repaired(bool verified);
std::shared_ptr<Snapshot> healthy();
// Missing and overlapping boxes, a file that is not there, several findings, no remedy.
std::shared_ptr<Snapshot> damaged();
std::shared_ptr<Snapshot> lossy();
std::shared_ptr<Snapshot> many_tensors(std::uint32_t count, std::uint32_t tiles_each = 2);
// One tensor of side * side tiles; one of them, in the middle, has no bytes.
std::shared_ptr<Snapshot> many_tiles(std::int64_t side);
std::shared_ptr<Snapshot> cannot_open();
std::shared_ptr<Snapshot> opening();
// Every shape that a picture has to stand: scalars, one dim, empty tensors, five dims, no chunks.
std::shared_ptr<Snapshot> odd_shapes();
// A look into the bytes at an archive's end: a header, a payload of float32, a descriptor.
std::shared_ptr<Snapshot> with_bytes(std::shared_ptr<Snapshot> snapshot,
                                     std::optional<verbs::BytesRecord> record = {});
// A look at the values of the chosen tensor, one NaN and an infinity among them.
std::shared_ptr<Snapshot> with_values(std::shared_ptr<Snapshot> snapshot);

// Beside a checkpoint of another program, whose map names tensors of this one: a row that joins and
// stacks, one that only renames, one whose tensor differs, and tensors without a row.
std::shared_ptr<Snapshot> with_names(std::shared_ptr<Snapshot> snapshot, std::size_t rows = 6);

// A folder of steps named step_100, step_200, ...; `counted`: with norms by module, and NaN that
// begin at step_300 in layers.5.mlp.
std::shared_ptr<Snapshot> run_of_steps(std::size_t steps, std::size_t layers, bool counted);

struct State {
  std::string name;
  std::shared_ptr<Snapshot> snapshot;
  JobState job;
};
std::vector<State> all_states();

}  // namespace shw::make
