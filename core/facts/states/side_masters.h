// Per-rank optimizer files beside the checkpoint (optimizer_rank_R.pt): every rank wrote its own
// masters there, so what deduplication dropped from the model is still in them (S4).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/facts/layout/dropped_axes.h"
#include "core/formats/common/side_tensors.h"

namespace shw {

struct SideMasters {
  struct RankFile {
    std::string path;
    std::shared_ptr<const ByteSource> source;
    std::map<std::string, SideTensor> masters;  // by their place in the file: "master_params.3"
  };
  std::map<std::int64_t, RankFile> ranks;
};

// Files of the checkpoint's directory that nothing points to and whose name ends in a rank
// ("optimizer_rank_3.pt"), with their tensors. Those that cannot be read are left out.
struct RankTensors {
  std::string path;
  std::shared_ptr<const ByteSource> source;
  std::vector<SideTensor> tensors;
};
std::map<std::int64_t, RankTensors> read_rank_files(const Checkpoint& checkpoint);
// "master_params.3"
std::string place_of(const std::vector<PathPart>& path);

// Files of the checkpoint's directory whose name ends in a rank and that hold masters. Nothing
// where there are none.
std::optional<SideMasters> read_side_masters(const Checkpoint& checkpoint);

struct SideRestore {
  std::vector<SidePiece> pieces;
  std::string master;         // its place in the files
  std::int64_t compared = 0;  // elements of survivors that equal the master, cast to the dtype
};

// Every part of a tensor from the file of the rank that holds it. Which master belongs to the
// tensor is told by values, not by an order: on the ranks whose chunks survived it must equal them.
std::optional<SideRestore> restore_from_side(const CheckInput& input, const SideMasters& masters,
                                             const DroppedAxis& dropped);

// Where the tiles' writers and the values part: a survivor that is another rank's master, and not
// its writer's. Nothing where the values say nothing of the kind, or where `comparisons`, which
// counts down, has come to its end. One sentence otherwise.
std::optional<std::string> contradicted_by_masters(const CheckInput& input,
                                                   const SideMasters& masters,
                                                   const DroppedAxis& dropped,
                                                   std::int64_t& comparisons);

}  // namespace shw
