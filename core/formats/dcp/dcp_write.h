// Writes a DCP `.metadata` that every torch since 2.6 loads under every Python: protocol 2 opcodes,
// torch.Size as REDUCE, five tensor properties, no path objects (checkpoint_id is a str),
// planner_data for every key, storage records in chunk order (spec/dcp-format.md 2.7, 10.4).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/formats/common/torch_item_write.h"
#include "core/io/sink.h"
#include "core/model/checkpoint.h"

namespace shw {

// The attribute of Metadata that carries Provenance::reordered.
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
  std::vector<PathPart> path;  // empty: the one part {fqn}
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
  std::vector<std::string> reordered;  // Provenance::reordered; left out where empty
  // Provenance::plain_attributes, as they are: opcodes without a memo.
  std::vector<std::pair<std::string, std::string>> plain_attributes = {};
  // Where set, the chunks of a tensor, by index: asked for as they are written, twice. `tensors`
  // have none then: of millions they take 150 bytes each.
  std::function<Result<std::vector<DcpChunk>>(std::size_t tensor)> chunks_of = {};
  std::vector<DcpUnclaimedRecord> unclaimed_records = {};
  std::vector<std::string> only_in_planner = {};  // Provenance::only_in_planner
};

Status write_dcp_metadata(const DcpMetadata& metadata, ByteSink& sink);

}  // namespace shw
