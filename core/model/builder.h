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
  ~CheckpointBuilder();

  void set_format(Format format, Encoding encoding);
  void set_provenance(Provenance provenance);
  void set_directory(std::shared_ptr<const Directory> directory);
  void reserve(std::uint32_t tensors, std::uint32_t chunks);

  // Tensors come one after the other, each followed by its chunks.
  TensorId add_tensor(std::string fqn, Dtype dtype, ExtentsView shape, bool requires_grad = false);
  // Appends to the tensor added last. Storage may be attached later by set_item.
  ChunkId add_chunk(ExtentsView offsets, ExtentsView sizes, ItemPlace item = {});
  void set_item(ChunkId chunk, ItemPlace item);
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
  std::uint32_t pool(ExtentsView coordinates);         // stored anew
  std::uint32_t pool_shared(ExtentsView coordinates);  // stored once for equal ones

  std::shared_ptr<Checkpoint> checkpoint_;
  std::unordered_map<std::string, FileId> file_ids_;
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> shared_;
};

// The writer's rank in a data file's name: "__12_0.distcp", "hint__12_0.distcp",
// "shard-00013-model-00001-of-00002.safetensors" (13 - 1).
std::optional<std::uint32_t> rank_in_file_name(std::string_view path);

}  // namespace shw
