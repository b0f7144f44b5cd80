// What Megatron reads beside .metadata in a folder of torch_dist:
//
//   metadata.json   {"sharded_backend": "torch_dist", ...}; a load begins with it
//   common.pt       torch.save's file of what all ranks share: arguments, iteration, settings
//
// Newer writers keep the second inside, as the object common_state. A metadata.json that names no
// backend is some other program's.
#pragma once

#include "core/io/source.h"
#include "core/model/builder.h"

namespace shw {

inline constexpr const char* kMegatronMarker = "metadata.json";
inline constexpr const char* kCommonState = "common.pt";

// Findings of the rule "bad-record". common.pt is read whole up to 64 MiB, checksums included.
void note_megatron_files(const Directory& directory, bool has_common_object,
                         CheckpointBuilder& builder);

// The same for a folder without the marker, where the metadata names no nested dicts, as that of
// torch_dist does not: what else Megatron writes tells that it is its.
void note_missing_marker(const Directory& directory, bool has_common_object,
                         CheckpointBuilder& builder);

}  // namespace shw
