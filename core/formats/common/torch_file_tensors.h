// The tensors in a torch.save file of any structure: per-rank optimizer files (MLite's
// optimizer_rank_R.pt), model files of other trainers. Nothing is executed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/formats/pickle/pickle.h"
#include "core/formats/zip/zip.h"
#include "core/io/source.h"
#include "core/model/checkpoint.h"

namespace shw {

// Mesh and placements of a pickled DTensor, whose local tensor is a part of the global one.
struct DTensorMesh {
  std::vector<std::string> dim_names;  // may be empty: a mesh need not have names
  Extents shape;
  std::vector<std::int64_t> ranks;  // row-major over `shape`
};
struct DTensorSharding {
  Extents global_shape;
  std::vector<std::string> placements;  // one per mesh dim: "Shard(0)", "Replicate()",
                                        // "_StridedShard(dim=0, sf=2)", "Partial(sum)"
  DTensorMesh mesh;
  std::optional<std::int64_t> rank;   // the rank that wrote it
  std::optional<Extents> coordinate;  // of `rank` in the mesh
  // Python's hash of the mesh, which differs in every process.
  std::optional<std::int64_t> mesh_hash = {};
};

struct TorchFileTensor {
  std::vector<PathPart> path;  // in the file's structure: "master_params", 0
  Dtype dtype = Dtype::kUnknown;
  Extents sizes;  // of the tensor in this file
  Extents strides;
  std::int64_t storage_offset = 0;   // in elements
  std::uint64_t payload_offset = 0;  // absolute offset of the whole storage in the file
  std::uint64_t payload_length = 0;
  std::optional<std::uint32_t> crc;  // of the storage record
  bool big_endian = false;
  std::optional<DTensorSharding> sharding;  // nullopt for plain tensors
};

// For a call that creates a DTensor: the call that creates its local tensor; kAbsent for other
// nodes.
NodeId local_tensor_of_dtensor(const PickleTree& tree, NodeId node);
// Mesh, placements and global shape of a DTensor call.
DTensorSharding dtensor_sharding(const PickleTree& tree, const ZipReader& zip, NodeId node,
                                 bool big_endian);
// The box of the global tensor that the local tensor holds, from mesh, placements and writing rank
// (if unknown, the first rank). nullopt if they give no box of the local size or a strided split.
std::optional<Box> box_of_local_tensor(const DTensorSharding& sharding, ExtentsView local);

// An unreadable tensor and the reason.
struct UnreadableTensor {
  std::vector<PathPart> path;
  Error error;
};

struct SideFile {
  std::vector<TorchFileTensor> tensors;  // in the order of the file's structure
  std::vector<UnreadableTensor> unreadable;
};

// A torch.save file in any form with its pickle decoded; texts of the tree refer to `pickle`.
struct OpenedTorchFile {
  ZipReader zip;
  Bytes pickle;
  PickleTree tree;
  bool big_endian = false;
};
Result<OpenedTorchFile> open_and_decode_torch_file(std::shared_ptr<const ByteSource> source);
// A key in `path` that is neither text nor a number is represented by text: "bfloat16-float32" for
// a tuple of dtypes.
Result<SideFile> tensors_of_torch_file(const OpenedTorchFile& file);
Result<SideFile> read_torch_file_tensors(std::shared_ptr<const ByteSource> source);

// The elements of one tensor, row-major and little-endian.
Result<Bytes> read_torch_file_elements(const ByteSource& source, const TorchFileTensor& tensor);

}  // namespace shw
