// Options of verbs, shared by command line, desktop and replay.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/run_limits.h"
#include "core/facts/depth.h"

namespace shw {
namespace verbs {

inline constexpr std::uint32_t kMaxRanksPerNode = 1024;

}  // namespace verbs

struct VerbOptions {
  std::string checkpoint;              // a folder, its .metadata, or a .safetensors file
  std::string spec;                    // --spec FILE
  std::string against;                 // --against CHECKPOINT
  std::string mesh;                    // --mesh dp=4,tp=2
  std::optional<Depth> depth;          // --depth, --data; nullopt: default by checkpoint size
  std::string fill;                    // --fill zero | cast | from:CHECKPOINT; empty: as advised
  std::string plan;                    // --plan FILE; empty: made from findings
  std::string out;                     // --out FOLDER; empty: next to the checkpoint
  bool in_place = false;               // --in-place
  std::vector<std::string> then = {};  // --then STEP: further steps in the same pass
  std::vector<std::string> leave_out = {};  // --leave-out PATTERN: entries that are not copied
  bool weights_only = false;                // --weights-only: only tensors of the model
  std::vector<std::string> strip = {};      // --strip PREFIX or "wrappers"
  std::vector<std::string> rename = {};     // --rename REGEX=TO
  std::string dtype = {};                   // --dtype: of floating weights; empty: unchanged
  std::string only = {};                    // words and terms as of ls; empty: all entries
  std::string placements = {};              // --placements FILE; empty: Shard(0) on the first axis
  std::string to = {};                      // --to dcp | safetensors | torch
  std::uint64_t shard_bytes = 0;            // --shard-size BYTES; 0: the format's own
  std::string baseline = {};                // --baseline FILE: an earlier check --json
  std::string policy = {};                  // --policy FILE: requirements
  std::uint64_t memory = kDefaultMemory;    // --memory BYTES
  std::uint32_t ranks_per_node = 0;         // --ranks-per-node N; 0: not given

  bool operator==(const VerbOptions&) const = default;
};

}  // namespace shw
