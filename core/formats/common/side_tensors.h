// The tensors inside a whole torch.save file, whatever structure holds them: per-rank optimizer
// files (MLite's optimizer_rank_R.pt), model files of other trainers. Read, never run.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/formats/common/pickle.h"
#include "core/formats/common/zip.h"
#include "core/io/source.h"
#include "core/model/checkpoint.h"

namespace shw {

// What a pickled DTensor says about the whole that its local tensor is a part of.
struct SideMesh {
  std::vector<std::string> dim_names;  // may be empty: a mesh need not have names
  Extents shape;
  std::vector<std::int64_t> ranks;  // row-major over `shape`
};
struct SideSharding {
  Extents global_shape;
  std::vector<std::string> placements;  // one a mesh dim: "Shard(0)", "Replicate()",
                                        // "_StridedShard(dim=0, sf=2)", "Partial(sum)"
  SideMesh mesh;
  std::optional<std::int64_t> rank;   // who wrote it
  std::optional<Extents> coordinate;  // of that rank in the mesh
  // Python's hash of the mesh, which is another number in every process.
  std::optional<std::int64_t> mesh_hash = {};
};

struct SideTensor {
  std::vector<PathPart> path;  // in the structure: "master_params", 0
  Dtype dtype = Dtype::kUnknown;
  Extents sizes;  // of what is in this file
  Extents strides;
  std::int64_t storage_offset = 0;   // in elements
  std::uint64_t payload_offset = 0;  // of the whole storage: absolute, in the file
  std::uint64_t payload_length = 0;
  std::optional<std::uint32_t> crc;  // of the storage record
  bool big_endian = false;
  std::optional<SideSharding> sharding;  // nothing for plain tensors
};

// Of a call that makes a DTensor: the call that makes its local tensor. kAbsent for all others.
NodeId dtensor_local(const PickleTree& tree, NodeId node);
// What it says of the whole.
SideSharding dtensor_sharding(const PickleTree& tree, const ZipReader& zip, NodeId node,
                              bool big_endian);
// The box of the whole that the local tensor is, by its mesh, its placements and the rank that
// wrote it; of a rank that is not known the first one. Nothing where they give no box of that size,
// or cut in strides.
std::optional<Box> held_box(const SideSharding& sharding, ExtentsView local);

// A tensor that is there but cannot be read, and why.
struct SideUnreadable {
  std::vector<PathPart> path;
  Error error;
};

struct SideFile {
  std::vector<SideTensor> tensors;  // in the order of the structure
  std::vector<SideUnreadable> unreadable;
};

// A file of torch.save in any form, opened as far as its pickle, whose texts point into `pickle`.
struct OpenedSide {
  ZipReader zip;
  Bytes pickle;
  PickleTree tree;
  bool big_endian = false;
};
Result<OpenedSide> open_side_file(std::shared_ptr<const ByteSource> source);
// `path` of a key that is neither text nor a number has its words: "bfloat16-float32" of a tuple of
// dtypes.
Result<SideFile> side_tensors_of(const OpenedSide& file);
Result<SideFile> read_side_tensors(std::shared_ptr<const ByteSource> source);

// The elements of one of them, row-major and little-endian.
Result<Bytes> read_side_elements(const ByteSource& source, const SideTensor& tensor);

}  // namespace shw
