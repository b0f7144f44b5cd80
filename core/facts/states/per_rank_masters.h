// Optimizer files per rank next to the checkpoint (optimizer_rank_R.pt): each rank saved its own
// masters, so data that deduplication dropped from the model is still there.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/facts/layout/dropped_axes.h"
#include "core/formats/common/torch_file_tensors.h"

namespace shw {

struct PerRankMasters {
  struct RankFile {
    std::string path;
    std::shared_ptr<const ByteSource> source;
    std::map<std::string, TorchFileTensor> masters;  // by position in the file: "master_params.3"
  };
  std::map<std::int64_t, RankFile> ranks;
};

// Unreferenced files of the checkpoint's folder whose name ends in a rank ("optimizer_rank_3.pt"),
// with their tensors. Unreadable files are skipped.
struct RankTensors {
  std::string path;
  std::shared_ptr<const ByteSource> source;
  std::vector<TorchFileTensor> tensors;
};
std::map<std::int64_t, RankTensors> read_rank_files(const Checkpoint& checkpoint);

// Files of the checkpoint's folder whose name ends in a rank and that hold masters; nullopt if
// there are none.
std::optional<PerRankMasters> read_per_rank_masters(const Checkpoint& checkpoint);

struct RankFileRestore {
  std::vector<ExternalPiece> pieces;
  std::string master;         // position in the files
  std::int64_t compared = 0;  // retained elements equal to the master after a cast
};

// Restores each part of a tensor from the file of the rank that holds it. The master is identified
// by values, not by order: it must equal the retained chunks of its ranks.
std::optional<RankFileRestore> restore_from_rank_files(const CheckInput& input,
                                                       const PerRankMasters& masters,
                                                       const DroppedAxis& dropped);

// A sentence if a retained chunk equals another rank's master and not its writer's.
// nullopt if the values do not show that, or if the budget `comparisons` is
// exhausted.
std::optional<std::string> contradicted_by_masters(const CheckInput& input,
                                                   const PerRankMasters& masters,
                                                   const DroppedAxis& dropped,
                                                   std::int64_t& comparisons);

}  // namespace shw
