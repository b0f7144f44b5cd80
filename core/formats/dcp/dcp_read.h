// PyTorch DCP metadata: one `.metadata`, or one `__R.metadata` a rank.
//
//   Metadata { state_dict_metadata: {fqn: TensorStorageMetadata | BytesStorageMetadata},
//              planner_data: {fqn: path} | None,
//              storage_data: {MetadataIndex: _StorageInfo},
//              storage_meta: StorageMeta, version: str, ... }
//
// Classes are told apart by their fields, not by their modules: torch moved them, and Megatron and
// ByteCheckpoint have their own. Real files break the grammar in these ways, all of which open:
// plain tuples for torch.Size (Megatron-FSDP), six tensor properties (torch 2.15), hints that
// point to the wrong chunk (Megatron), BYTES keys with an offset of None, planner_data None.
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
  // False: every opcode goes through the general machine. The slow reference of the tests.
  bool shortcuts = true;
  const Format* format = &kDcpFormat;
};

Result<std::shared_ptr<const Checkpoint>> read_dcp(std::shared_ptr<const Directory> directory,
                                                   Progress* progress,
                                                   const DcpReadOptions& options = {});
// `directory` may be null: then nothing is known about the data files.
Result<std::shared_ptr<const Checkpoint>> read_dcp_metadata(
    const ByteSource& source, std::shared_ptr<const Directory> directory, Progress* progress,
    const DcpReadOptions& options = {});

// Merges the `__R.metadata` of these ranks: chunks are united, and of equal boxes the lowest rank's
// stays (the others are replicas).
Result<std::shared_ptr<const Checkpoint>> read_dcp_rank_local(
    std::shared_ptr<const Directory> directory, const std::vector<std::uint32_t>& ranks,
    Progress* progress);

}  // namespace shw
