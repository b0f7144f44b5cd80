// Chunks of a tensor that several files of torch.save hold in pieces, one file per rank.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/formats/common/side_tensors.h"
#include "core/model/builder.h"

namespace shw {

// What one rank's file holds of a tensor.
struct RankPiece {
  std::uint32_t rank = 0;
  FileId file = FileId::kNone;
  SideTensor tensor = {};
  const Codec* codec = nullptr;  // null: the format's
};

class RankChunks {
 public:
  explicit RankChunks(CheckpointBuilder& builder) : builder_(builder) {}

  // What follows is of the tensor that the builder has added last.
  void begin_tensor() { seen_.clear(); }
  // The boxes that a piece is made of, in the order in which it holds them along the axis that is
  // cut. A box that an earlier piece had is a replica. kUnsupported: why the piece is not these.
  Status add(const RankPiece& piece, const std::vector<Box>& boxes);

 private:
  StorageId storage_of(const RankPiece& piece);
  void add_box(const RankPiece& piece, const Box& box, std::int64_t element, bool is_alone);

  CheckpointBuilder& builder_;
  std::map<std::pair<Extents, Extents>, ChunkId> seen_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, StorageId> storages_;
};

}  // namespace shw
