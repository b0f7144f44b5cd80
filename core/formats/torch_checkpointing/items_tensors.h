// Joins the parts in the ranks' files into tensors, and compares them with metadata.pkl.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/formats/torch_checkpointing/items_files.h"

namespace shw {

struct ItemSource {
  std::string item;
  std::uint32_t rank = 0;
  std::string path;
  FileId file = FileId::kNone;
  bool is_recorded = false;
};

class ItemsTensors {
 public:
  explicit ItemsTensors(CheckpointBuilder& builder) : builder_(builder), chunks_(builder) {}

  void add(const ItemSource& source, ItemTensors tensors);
  // Adds all tensors and findings to the builder.
  void finish(const ItemsMetadata* metadata, std::uint32_t ranks);

 private:
  struct Named {
    std::string item, path;  // dotted
    std::vector<RankPiece> pieces;
    std::vector<std::string> files;  // files of its pieces
  };

  void check_recorded_rank(const ItemSource& source, const TorchFileTensor& tensor);
  const ItemGroup* group_of(const Named& named, std::uint32_t rank) const;
  void add_tensor(const std::string& fqn, Named& named);
  void add_piece(const std::string& fqn, const Named& named, std::size_t at, Dtype dtype,
                 const Extents& shape);
  void check_recorded(const std::string& fqn, const Named& named);
  void note(const std::string& reason, const std::string& fqn, const std::string& file);
  void report_wrong_items();
  void add_lost(std::uint32_t ranks);

  CheckpointBuilder& builder_;
  RankChunks chunks_;
  const ItemsMetadata* metadata_ = nullptr;
  std::unordered_map<std::string, Named> named_;
  std::vector<std::string> order_, unrecorded_;
  std::map<std::string, std::pair<std::int64_t, std::string>> hashes_;  // rank and mesh: hash, file
  std::map<std::string, std::string> swapped_, stale_;                  // by file
  std::map<std::string, std::vector<std::pair<std::string, std::string>>> wrong_, unread_;
};

}  // namespace shw
