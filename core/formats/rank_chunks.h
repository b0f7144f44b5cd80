// Adds the chunks of a tensor whose parts are in several torch.save files, one per rank.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/formats/common/torch_file_tensors.h"
#include "core/model/builder.h"

namespace shw {

// The part of a tensor in one rank's file.
struct RankPiece {
  std::uint32_t rank = 0;
  FileId file = FileId::kNone;
  TorchFileTensor tensor = {};
  const Codec* codec = nullptr;  // null: the format's codec
};

class RankChunks {
 public:
  explicit RankChunks(CheckpointBuilder& builder) : builder_(builder) {}

  // Following calls refer to the tensor last added to the builder.
  void begin_tensor() { seen_.clear(); }
  // Adds the boxes that form a piece, in their order along the split axis. A box of an earlier
  // piece becomes a replica. kUnsupported tells why the piece does not consist of these boxes.
  Status add(const RankPiece& piece, const std::vector<Box>& boxes);

 private:
  StorageId storage_of(const RankPiece& piece);
  void add_box(const RankPiece& piece, const Box& box, std::int64_t element, bool is_alone);

  CheckpointBuilder& builder_;
  std::map<std::pair<Extents, Extents>, ChunkId> seen_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, StorageId> storages_;
};

}  // namespace shw
