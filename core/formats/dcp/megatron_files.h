// Files of Megatron next to .metadata in a torch_dist folder:
//
//   metadata.json   {"sharded_backend": "torch_dist", ...}; loading starts with it
//   common.pt       torch.save file of what all ranks share: arguments, iteration, settings
//
// Newer writers store the latter inside the checkpoint, as the entry common_state. A metadata.json
// without backend belongs to another program.
#pragma once

#include "core/io/source.h"
#include "core/model/builder.h"

namespace shw {

inline constexpr const char* kMegatronMarker = "metadata.json";
inline constexpr const char* kCommonState = "common.pt";

// Findings of the rule "bad-record". Reads common.pt completely, with checksums, up to 64 MiB.
void report_megatron_files(const Directory& directory, bool has_common_object,
                           CheckpointBuilder& builder);

// Reports on a folder without metadata.json whose .metadata, like torch_dist's, has no nested
// dicts: recognised by Megatron's other files.
void report_missing_marker(const Directory& directory, bool has_common_object,
                           CheckpointBuilder& builder);

}  // namespace shw
