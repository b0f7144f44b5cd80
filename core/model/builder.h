// Builds the columns of a Checkpoint, for format readers and for tests without
// files.
//
// By default storage i belongs to chunk i. The first shared or separately added
// storage switches to an explicit table, which costs 4 bytes per chunk.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/progress.h"
#include "core/model/checkpoint.h"

namespace shw {

class CheckpointBuilder {
 public:
  CheckpointBuilder();
  CheckpointBuilder(CheckpointBuilder&&) = default;
  CheckpointBuilder& operator=(CheckpointBuilder&&) = default;
  ~CheckpointBuilder();

  // The Format must outlive every checkpoint.
  void set_format(const Format& format);
  void set_provenance(Provenance provenance);
  void set_directory(std::shared_ptr<const Directory> directory);
  void reserve(std::uint32_t tensors, std::uint32_t chunks);

  // Interned coordinates. With 1,024 ranks 3.5 million chunks use about 60,000 distinct offsets;
  // equal handles mean equal coordinates.
  enum class Handle : std::uint32_t {};
  Handle extents(ExtentsView coordinates);
  ExtentsView extents(Handle handle) const {
    return checkpoint_->coordinates(static_cast<std::uint32_t>(handle));
  }

  // Adds a tensor; its chunks must be added before the next tensor.
  TensorId add_tensor(std::string fqn, Dtype dtype, ExtentsView shape, bool requires_grad = false);
  // Adds a chunk to the last tensor. Its storage may be set later with set_item.
  ChunkId add_chunk(ExtentsView offsets, ExtentsView sizes, ItemPlace item = {});
  // Adds a chunk with interned coordinates, for readers of millions of chunks.
  ChunkId add_chunk(Handle offsets, Handle sizes);
  void set_item(ChunkId chunk, ItemPlace item);
  Handle chunk_offsets(ChunkId chunk) const {
    return Handle{checkpoint_->chunk_offsets_[index_of(chunk)]};
  }
  Checkpoint::ChunkRange chunks(TensorId tensor) const { return checkpoint_->chunks(tensor); }
  std::uint32_t chunk_count() const { return checkpoint_->chunk_count(); }
  FileId chunk_file(ChunkId chunk) const {
    std::size_t storage = checkpoint_->storage_index(chunk);
    return storage < checkpoint_->storage_file_.size() ? checkpoint_->storage_file_[storage]
                                                       : FileId::kNone;
  }
  void share_item(ChunkId from, ChunkId to);  // both chunks then use one storage
  void set_transforms(ChunkId chunk, std::vector<std::string> transforms);
  // Sets the writer of a chunk if it differs from its file's writer.
  void set_writer(ChunkId chunk, std::uint32_t rank);

  // Adds a storage that no single chunk owns; null `codec` means the format's. Chunks are then
  // views of it, with an element offset and strides (empty: row-major).
  StorageId add_storage(ItemPlace place, const Codec* codec = nullptr,
                        std::vector<std::string> transforms = {});
  void set_view(ChunkId chunk, StorageId storage, std::int64_t element = 0,
                ExtentsView strides = {});
  void add_replica(Replica replica);
  void set_path(TensorId tensor, std::vector<PathPart> path);

  void add_object(NonTensorEntry object, std::vector<PathPart> path = {});
  void add_unclaimed_record(UnclaimedStorageRecord unclaimed);
  void add_finding(Finding finding);

  // The id of the file with this recorded path, added at its first mention. The format derives the
  // writer's rank from the name.
  FileId file(std::string_view path);

  // Stats all files of the directory, adds unreferenced ones and returns the finished checkpoint.
  // If `progress` was cancelled the result is incomplete and must not be used.
  std::shared_ptr<const Checkpoint> finish(const Progress* progress = nullptr);

  // A copy of the checkpoint with one more opening finding.
  static std::shared_ptr<const Checkpoint> with_finding(const Checkpoint& checkpoint,
                                                        Finding finding);

 private:
  void grow_shared_item_table();
  void set_coding(std::size_t storage, Checkpoint::Coding coding);
  void materialise_storage_ids();
  void add_storage_row(ItemPlace place);
  void stat_files();

  std::shared_ptr<Checkpoint> checkpoint_;
  std::unordered_map<std::string, FileId> file_ids_;
  std::vector<std::uint32_t> shared_;  // hash table with open addressing: pool index + 1, 0 if free
  std::size_t shared_count_ = 0;
  bool numbered_ = false;  // storage ids differ from chunk ids
};

}  // namespace shw
