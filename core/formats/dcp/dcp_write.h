// Writes a DCP `.metadata` that torch since 2.6 loads under every Python: protocol 2 opcodes,
// torch.Size by REDUCE, five tensor properties, no path objects (checkpoint_id is a str),
// planner_data for every key, storage records in chunk order.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/formats/common/torch_item_write.h"
#include "core/io/sink.h"
#include "core/model/checkpoint.h"

namespace shw {

// The attribute of Metadata that stores Provenance::reordered.
inline constexpr std::string_view kReorderedAttribute = "shardwright_reordered";

struct DcpItem {
  std::string path;  // relative
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::vector<std::string> transforms = {};
};

struct DcpChunk {
  Extents offsets;
  Extents sizes;
  DcpItem item;
};

struct DcpTensor {
  std::string fqn;
  Dtype dtype = Dtype::kUnknown;
  bool requires_grad = false;
  Extents shape;
  std::vector<DcpChunk> chunks;
  std::vector<PathPart> path;  // if empty: {fqn}
};

struct DcpObject {
  std::string fqn;
  DcpItem item;
  std::vector<PathPart> path;
};

struct DcpUnclaimedRecord {  // UnclaimedStorageRecord
  std::string fqn;
  std::optional<Extents> offsets;
  DcpItem item;
};

struct DcpMetadata {
  std::vector<DcpTensor> tensors;
  std::vector<DcpObject> objects;
  std::string checkpoint_id;  // text only
  std::string save_id;
  std::vector<std::string> reordered;  // Provenance::reordered; omitted if empty
  // Opcodes of Provenance::plain_attributes, without memo references.
  std::vector<std::pair<std::string, std::string>> plain_attributes = {};
  // If set, returns the chunks of a tensor by index. It is called twice during writing, and
  // `tensors` have no chunks then, since millions would take 150 bytes each.
  std::function<Result<std::vector<DcpChunk>>(std::size_t tensor)> chunks_of = {};
  std::vector<DcpUnclaimedRecord> unclaimed_records = {};
  std::vector<std::string> only_in_planner = {};  // Provenance::only_in_planner
};

Status write_dcp_metadata(const DcpMetadata& metadata, ByteSink& sink);

}  // namespace shw
