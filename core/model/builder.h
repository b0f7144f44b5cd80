// Fills the columns of a Checkpoint. Format readers, and tests that need a checkpoint without
// files, go through it.
//
// At first every chunk has a storage of its own, of the same number. The first storage that is
// shared, or added by itself, gives them numbers of their own: 4 bytes a chunk more.
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

  // Rows of formats outlive every checkpoint.
  void set_format(const Format& format);
  void set_provenance(Provenance provenance);
  void set_directory(std::shared_ptr<const Directory> directory);
  void reserve(std::uint32_t tensors, std::uint32_t chunks);

  // Coordinates, stored once for equal ones. At 1,024 ranks 3.5 million chunks share some 60,000
  // offsets: comparing handles is comparing coordinates.
  enum class Handle : std::uint32_t {};
  Handle extents(ExtentsView coordinates);
  ExtentsView extents(Handle handle) const {
    return checkpoint_->coordinates(static_cast<std::uint32_t>(handle));
  }

  // Tensors come one after the other, each followed by its chunks.
  TensorId add_tensor(std::string fqn, Dtype dtype, ExtentsView shape, bool requires_grad = false);
  // Appends to the tensor added last. Storage may be attached later by set_item.
  ChunkId add_chunk(ExtentsView offsets, ExtentsView sizes, ItemPlace item = {});
  // The same by handles of `extents`: what a reader of millions of chunks does.
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
  void share_item(ChunkId from, ChunkId to);  // one storage for both
  void set_transforms(ChunkId chunk, std::vector<std::string> transforms);
  // Who wrote it, where another than its file's writer.
  void set_writer(ChunkId chunk, std::uint32_t rank);

  // A storage that no chunk has for itself; `codec`: null for the format's. Chunks are then views
  // of it, at an element and with strides (none: row-major).
  StorageId add_storage(ItemPlace place, const Codec* codec = nullptr,
                        std::vector<std::string> transforms = {});
  void set_view(ChunkId chunk, StorageId storage, std::int64_t element = 0,
                ExtentsView strides = {});
  void add_replica(Replica replica);
  void set_path(TensorId tensor, std::vector<PathPart> path);

  void add_object(ObjectRow object, std::vector<PathPart> path = {});
  void add_stray(StrayRecord stray);
  void add_finding(Finding finding);

  // The file with that recorded path, added at its first mention. Who wrote it is what the format
  // reads from the name.
  FileId file(std::string_view path);

  // Looks at every file in the directory (existence, size, what lies there unreferenced) and seals
  // the columns. Where it was cancelled it is not to be looked at.
  std::shared_ptr<const Checkpoint> finish(const Progress* progress = nullptr);

  // A copy with one thing more that was found around it.
  static std::shared_ptr<const Checkpoint> with_finding(const Checkpoint& checkpoint,
                                                        Finding finding);

 private:
  void grow_shared();
  void set_coding(std::size_t storage, Checkpoint::Coding coding);
  void give_storages_numbers();
  void add_storage_row(ItemPlace place);
  void look_at_files();

  std::shared_ptr<Checkpoint> checkpoint_;
  std::unordered_map<std::string, FileId> file_ids_;
  std::vector<std::uint32_t> shared_;  // open addressing; pool index + 1, 0 where free
  std::size_t shared_count_ = 0;
  bool numbered_ = false;  // storages have numbers of their own
};

}  // namespace shw
