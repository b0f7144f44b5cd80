// PyTorch DCP metadata: one `.metadata`, or one `__R.metadata` per rank.
//
//   Metadata { state_dict_metadata: {fqn: TensorStorageMetadata | BytesStorageMetadata},
//              planner_data: {fqn: path} | None,
//              storage_data: {MetadataIndex: _StorageInfo},
//              storage_meta: StorageMeta, version: str, ... }
//
// Classes are recognised by their fields instead of modules, because torch moved them, and Megatron
// and ByteCheckpoint have their own. These deviations occur in real files and are accepted: plain
// tuples for torch.Size (Megatron-FSDP), six tensor properties (torch 2.15), hints to the wrong
// chunk (Megatron), BYTES keys with an offset of None, planner_data of None.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/formats/dcp/dcp_formats.h"
#include "core/model/checkpoint.h"

namespace shw {

struct DcpReadOptions {
  // False: every opcode goes through the general parser; the slow reference for tests.
  bool shortcuts = true;
  const Format* format = &kDcpFormat;
};

Result<std::shared_ptr<const Checkpoint>> read_dcp(std::shared_ptr<const Directory> directory,
                                                   Progress* progress,
                                                   const DcpReadOptions& options = {});
// `directory` may be null; data files are then not looked up.
Result<std::shared_ptr<const Checkpoint>> read_dcp_metadata(
    const ByteSource& source, std::shared_ptr<const Directory> directory, Progress* progress,
    const DcpReadOptions& options = {});

// Merges the `__R.metadata` of these ranks: chunks are united; of equal boxes the lowest rank's is
// the chunk and the others are its replicas.
Result<std::shared_ptr<const Checkpoint>> read_dcp_rank_local(
    std::shared_ptr<const Directory> directory, const std::vector<std::uint32_t>& ranks,
    Progress* progress);

}  // namespace shw
