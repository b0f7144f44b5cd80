// What can be done to a checkpoint, one step after the other: plain values that a person reads,
// writes and edits as JSON (json.h). A step names tensors as they are called when its turn
// comes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/transform/target_state.h"

namespace shw {

using Patterns = std::vector<std::string>;  // FQNs, or shell patterns of them

// --- which element stands where

// The saved tiles are taken as boxes elsewhere: what a saver recorded wrongly is said anew.
struct RelabelStep {
  std::string tensor;
  Extents shape;
  struct Tile {
    std::uint32_t chunk = 0;  // of the checkpoint
    Extents offsets;          // in the new shape
  };
  std::vector<Tile> tiles;
};
// Other tiles of the same tensor.
struct RetileStep {
  Patterns tensors;
  std::vector<TargetChunk> tiles;  // none: one tile of all
};
struct ReshardStep {
  Patterns tensors;
  Mesh mesh;
  std::vector<Placement> placements;
};
// Dim d becomes what dim order[d] was.
struct PermuteDimsStep {
  Patterns tensors;
  Extents order;
};
// A dim is cut into blocks; block i becomes what block order[i] was.
struct PermuteBlocksStep {
  Patterns tensors;
  std::int64_t dim = 0;
  Extents sizes = {};  // of the blocks as they stand now; empty: all of one size
  Extents order = {};
};
struct SplitStep {
  std::string tensor;
  std::int64_t dim = 0;
  Extents sizes = {};
  std::vector<std::string> into = {};
  bool drop_dim = false;  // each is of one row, whose dim goes
};
struct ConcatStep {
  std::vector<std::string> tensors;
  std::int64_t dim = 0;
  std::string into;
  bool new_dim = false;  // they are stacked along a dim that they do not have
};
struct PadStep {
  Patterns tensors;
  Extents before = {}, after = {};
  double value = 0;
};
struct TrimStep {
  Patterns tensors;
  Box keep;
};

// --- what it is called

struct RenameStep {
  std::string from, to;
  bool regex = false;  // ECMAScript, of the whole name; $1 in `to` is what its first group matched
};
// The same elements under another name too: tied weights, where each name is saved.
struct CopyStep {
  std::string from, to;
};
struct DropStep {
  Patterns tensors;  // entries that are no tensors too
};

// --- what an element is

struct CastStep {
  Patterns tensors;
  Dtype dtype = Dtype::kUnknown;
};
// Elements that nobody saved, or those of `boxes`, whatever was saved of them.
struct FillStep {
  Patterns tensors;
  std::optional<std::vector<Box>> boxes = {};
  double value = 0;
  std::string from_checkpoint = {}, from_tensor = {};  // empty: `value`
  // And those of tiles whose file is not there, or ends before they do.
  bool gone = false;
  // Which files that is, and how many bytes of each there are; nothing: as it turns out.
  std::optional<std::map<std::string, std::uint64_t>> left = {};
};
// Elements are given up: they hold `value`, and count as lost.
struct MaskStep {
  Patterns tensors;
  std::vector<Box> boxes;
  double value = 0;
};
// Each element times the factor of its block, in float32, as DeepSeek-V3 saves FP8 weights
// (weight_scale_inv).
struct DequantiseStep {
  Patterns tensors;
  std::string suffix = "_scale_inv";  // <tensor><suffix> are its factors, which go
  Extents block = {};
  Dtype dtype = Dtype::kBfloat16;
};
// A box from a row-major payload in a file beside the checkpoint that no record names.
struct RestoreStep {
  std::string tensor;
  FromFile payload;
  Dtype dtype = Dtype::kUnknown;
  Extents at;
};

using Step = std::variant<RelabelStep, RetileStep, ReshardStep, PermuteDimsStep, PermuteBlocksStep,
                          SplitStep, ConcatStep, PadStep, TrimStep, RenameStep, CopyStep, DropStep,
                          CastStep, FillStep, MaskStep, DequantiseStep, RestoreStep>;

// The word for it: "permute-dims".
std::string_view name(const Step& step);
// "cast 26 tensors to bfloat16".
std::string to_text(const Step& step);

// Writes down in the steps that fill what is gone which files that is, so that they mean the same
// when they are taken again and a file is back, or another one gone.
void resolve_missing(const Checkpoint& source, std::vector<Step>& steps);

// Takes the steps in their order. An error names the step (from 1) and the tensor, and leaves
// nothing half done that anybody sees.
Result<TargetState> apply_steps(TargetState all, const std::vector<Step>& steps,
                                Progress* progress = nullptr);

// --- one step each (take_*.cpp)

Status apply(TargetState& all, const RelabelStep& step);
Status apply(TargetState& all, const RetileStep& step);
Status apply(TargetState& all, const ReshardStep& step);
Status apply(TargetState& all, const PermuteDimsStep& step);
Status apply(TargetState& all, const PermuteBlocksStep& step);
Status apply(TargetState& all, const SplitStep& step);
Status apply(TargetState& all, const ConcatStep& step);
Status apply(TargetState& all, const PadStep& step);
Status apply(TargetState& all, const TrimStep& step);
Status apply(TargetState& all, const RenameStep& step);
Status apply(TargetState& all, const CopyStep& step);
Status apply(TargetState& all, const DropStep& step);
Status apply(TargetState& all, const CastStep& step);
Status apply(TargetState& all, const FillStep& step);
Status apply(TargetState& all, const MaskStep& step);
Status apply(TargetState& all, const DequantiseStep& step);
Status apply(TargetState& all, const RestoreStep& step);

}  // namespace shw
