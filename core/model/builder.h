// Fills the columns of a Checkpoint. Format readers, and tests that need a checkpoint without
// files, go through it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/model/checkpoint.h"

namespace shw {

class CheckpointBuilder {
 public:
  CheckpointBuilder();
  CheckpointBuilder(CheckpointBuilder&&) = default;
  CheckpointBuilder& operator=(CheckpointBuilder&&) = default;
  ~CheckpointBuilder();

  void set_format(Format format, Encoding encoding);
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
  FileId chunk_file(ChunkId chunk) const { return checkpoint_->chunk_file_[index_of(chunk)]; }
  void share_item(ChunkId from, ChunkId to);  // place and transforms
  void set_transforms(ChunkId chunk, std::vector<std::string> transforms);
  void set_path(TensorId tensor, std::vector<PathPart> path);

  void add_object(ObjectRow object, std::vector<PathPart> path = {});
  void add_stray(StrayRecord stray);
  void add_finding(Finding finding);

  // The file with that recorded path, added at its first mention. The rank is read from the name.
  FileId file(std::string_view path);

  // Looks at every file in the directory (existence, size, what lies there unreferenced) and seals
  // the columns.
  std::shared_ptr<const Checkpoint> finish();

 private:
  void grow_shared();

  std::shared_ptr<Checkpoint> checkpoint_;
  std::unordered_map<std::string, FileId> file_ids_;
  std::vector<std::uint32_t> shared_;  // open addressing; pool index + 1, 0 where free
  std::size_t shared_count_ = 0;
};

// The writer's rank in a data file's name: "__12_0.distcp", "hint__12_0.distcp",
// "shard-00013-model-00001-of-00002.safetensors" (13 - 1).
std::optional<std::uint32_t> rank_in_file_name(std::string_view path);

}  // namespace shw
