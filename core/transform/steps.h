// Steps that change a checkpoint, one after the other: plain values that users read, write and edit
// as JSON (json.h). A step uses the names that tensors have when it is applied.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/transform/entry_value.h"
#include "core/transform/target_state.h"

namespace shw {

using Patterns = std::vector<std::string>;  // FQNs or shell patterns

// --- where elements are

// Assembles a tensor from its saved tiles at other offsets, to correct wrong records.
struct RelabelStep {
  std::string tensor;
  Extents shape;
  struct Tile {
    std::uint32_t chunk = 0;  // of the checkpoint
    Extents offsets;          // in the new shape
  };
  std::vector<Tile> tiles;
};
// Splits tensors into other tiles.
struct RetileStep {
  Patterns tensors;
  std::vector<TargetChunk> tiles;  // empty: one tile
};
struct ReshardStep {
  Patterns tensors;
  Mesh mesh;
  std::vector<Placement> placements;
};
// Dim d of the result is dim order[d] of the tensor.
struct PermuteDimsStep {
  Patterns tensors;
  Extents order;
};
// Splits a dim into blocks; block i of the result is block order[i] of the tensor.
struct PermuteBlocksStep {
  Patterns tensors;
  std::int64_t dim = 0;
  Extents sizes = {};  // of the blocks before the step; empty: equal sizes
  Extents order = {};
};
struct SplitStep {
  std::string tensor;
  std::int64_t dim = 0;
  Extents sizes = {};
  std::vector<std::string> into = {};
  bool drop_dim = false;  // each result has one row, and the dim is removed
};
struct ConcatStep {
  std::vector<std::string> tensors;
  std::int64_t dim = 0;
  std::string into;
  bool new_dim = false;  // stacks along a new dim
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

// --- names

struct RenameStep {
  std::string from, to;
  bool regex = false;  // ECMAScript, for the whole name; $1 in `to` is the first group
};
// Adds the same elements under another name, for tied weights that are saved under each name.
struct CopyStep {
  std::string from, to;
};
struct DropStep {
  Patterns tensors;  // also names other entries
};

// --- new entries, with names that nothing has yet

// Every element of the tensors is `value`.
struct CreateTensorsStep {
  std::vector<std::string> tensors;
  Dtype dtype = Dtype::kUnknown;
  Extents shape = {};
  double value = 0;
};
// Entries that are not tensors.
struct CreateEntriesStep {
  std::vector<std::string> entries;
  EntryValue value;
};

// --- values

struct CastStep {
  Patterns tensors;
  Dtype dtype = Dtype::kUnknown;
};
// Each element plus `value` in float32, rounded once to the tensor's dtype. Elements that were
// rounded before are refused: a cast to float32 may come first.
struct AddStep {
  Patterns tensors;
  double value = 0;
};
// Fills elements that were never saved, or the elements of `boxes`.
struct FillStep {
  Patterns tensors;
  std::optional<std::vector<Box>> boxes = {};
  double value = 0;
  std::string from_checkpoint = {}, from_tensor = {};  // empty: use `value`
  // Also fills tiles whose file is missing or too short.
  bool gone = false;
  // Missing or short files with the bytes that exist; nullopt: decided when the step is applied.
  std::optional<std::map<std::string, std::uint64_t>> left = {};
};
// Discards elements: they become `value` and count as lost.
struct MaskStep {
  Patterns tensors;
  std::vector<Box> boxes;
  double value = 0;
};
// Multiplies each element by its block's factor in float32, as for DeepSeek-V3's FP8 weights
// (weight_scale_inv).
struct DequantiseStep {
  Patterns tensors;
  std::string suffix = "_scale_inv";  // <tensor><suffix> has the factors and is removed
  Extents block = {};
  Dtype dtype = Dtype::kBfloat16;
};
// Reads a box from row-major bytes in a file of the checkpoint, which no record lists.
struct RestoreStep {
  std::string tensor;
  FromFile payload;
  Dtype dtype = Dtype::kUnknown;
  Extents at;
};

using Step = std::variant<RelabelStep, RetileStep, ReshardStep, PermuteDimsStep, PermuteBlocksStep,
                          SplitStep, ConcatStep, PadStep, TrimStep, RenameStep, CopyStep, DropStep,
                          CreateTensorsStep, CreateEntriesStep, CastStep, AddStep, FillStep,
                          MaskStep, DequantiseStep, RestoreStep>;

// Name of the step in JSON: "permute-dims".
std::string_view name(const Step& step);
// "cast 26 tensors to bfloat16".
std::string to_text(const Step& step);

// Stores the currently missing files in the steps that fill them, so that the steps do the same
// later, even if a file is back or another one is missing.
void resolve_missing(const Checkpoint& source, std::vector<Step>& steps);

// Applies the steps in order. An error names the step (from 1) and the tensor, and no partial
// result is returned.
Result<TargetState> apply_steps(TargetState all, const std::vector<Step>& steps,
                                Progress* progress = nullptr);

// --- one function per step (apply_*.cpp)

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
Status apply(TargetState& all, const CreateTensorsStep& step);
Status apply(TargetState& all, const CreateEntriesStep& step);
Status apply(TargetState& all, const CastStep& step);
Status apply(TargetState& all, const AddStep& step);
Status apply(TargetState& all, const FillStep& step);
Status apply(TargetState& all, const MaskStep& step);
Status apply(TargetState& all, const DequantiseStep& step);
Status apply(TargetState& all, const RestoreStep& step);

}  // namespace shw
