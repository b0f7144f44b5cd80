// The planned content of a new checkpoint while steps are applied: every tensor as boxes, and for
// every box the origin of its elements. Steps move boxes and read no bytes. After the last step all
// is lowered to one program (lower.h), so that any chain of steps costs one pass over the bytes.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/boxed_optional.h"
#include "core/base/result.h"
#include "core/formats/output_tiles.h"
#include "core/mesh/mesh.h"
#include "core/model/checkpoint.h"
#include "core/transform/entry_names.h"

namespace shw {

// --- origins of elements

struct FromChunk {
  std::uint32_t input = 0;  // in TargetState::inputs
  ChunkId chunk{};
};
// Row-major elements in a file of input 0 that no record lists.
struct FromFile {
  std::string file;
  std::uint64_t offset = 0, length = 0;
  Extents sizes;
};
// One element, little-endian, in the dtype after all casts.
struct FromConstant {
  std::array<std::uint64_t, 2> bits{0, 0};
  bool is_padding = false;  // true: never saved, so cutting it off loses nothing
};

// Scaling factors for blocks of a quantised weight: element i of the part has the factor at
// (first[e] + i[order[e]]) / block[e] in each dim e of the tensor of factors.
struct Scaling {
  std::uint32_t factors = 0;  // in TargetState::factors
  Extents first, block, order;
};

using PartSource = std::variant<FromChunk, BoxedOptional<FromFile>, FromConstant>;

// A box of a tensor with the origin of its elements. Dim d of the box runs along dim order[d] of
// the origin; -1 means a new dim of size one. `first` is the start in the origin, with a number per
// dim of the origin.
struct Part {
  Box box;
  PartSource from;
  Extents first = {}, order = {};
  Dtype saved = Dtype::kUnknown;  // dtype in the origin
  // Casts applied in order; the last is the tensor's dtype. Empty: the saved dtype stays.
  std::vector<Dtype> casts = {};
  BoxedOptional<Scaling> scaling = {};  // before the first cast, in float32

  const FromFile* file() const {
    const auto* from_file = std::get_if<BoxedOptional<FromFile>>(&from);
    return from_file == nullptr ? nullptr : &**from_file;
  }
  bool is_padding() const {
    const auto* constant = std::get_if<FromConstant>(&from);
    return constant != nullptr && constant->is_padding;
  }
};

// --- tensors

// A tile of a tensor. After a repair it may have `kept`: it then keeps the item of that chunk of
// input 0, whatever its record says, and has no parts.
using TargetChunk = OutputTile;

// Elements that lost their saved value, and what fills them ("zero", "cast", "from", "side",
// "mixed").
struct Loss {
  std::vector<Box> boxes = {};  // disjoint
  std::string fill = {}, fill_from = {}, fill_checkpoint = {};
};

struct TargetTensor {
  std::string fqn;
  Dtype dtype = Dtype::kUnknown;
  bool requires_grad = false;
  Extents shape;
  std::vector<Part> parts;
  std::vector<TargetChunk> tiles;  // of the result
  std::vector<PathPart> path = {};
  // Source tensor in input 0, if this tensor comes from exactly one.
  std::optional<TensorId> before = {};
  Loss loss = {};
  bool is_cast = false;      // true: some values were rounded
  bool is_moved = false;     // true: some elements have another index than in the source
  std::int64_t padding = 0;  // TensorCertificate::padding: cut off the end by a repair
};

// How to split a tensor whose tiles are not listed one by one.
struct WholeTiling {};
struct MeshTiling {
  std::uint32_t mesh = 0;  // in TargetState::meshes
  std::vector<Placement> placements;
  std::size_t step = 0;  // the step that requested it, counted from 1; used in later errors
};
using NewTiling = std::variant<std::monostate, WholeTiling, MeshTiling>;

class PackedTensor;  // packed_tensor.h

struct TargetEntry {
  std::string fqn;
  TensorId as_saved{};                         // in input 0, if unchanged
  std::shared_ptr<const PackedTensor> made{};  // otherwise set
  NewTiling tiling{};
};

struct TargetNonTensorEntry {
  std::size_t object = 0;  // in objects() of input 0: the entry with its value
  std::string fqn;
  std::vector<PathPart> path;
  // The entry whose place it has; differs from `object` if a repair replaced the value.
  std::size_t own = object;
  // Set for an entry that a step created, which has no object: its value as opcodes.
  std::shared_ptr<const std::string> created = {};
};

// An input that holds the tensors of another one, each with a number added to its elements.
struct AddedInput {
  std::uint32_t of = 0, input = 0;  // in TargetState::inputs
  float value = 0;
  bool is_float32 = false;  // the sums are float32, else of the dtype of each tensor
};

struct TargetState {
  std::vector<std::shared_ptr<const Checkpoint>> inputs;  // index 0: the plan's checkpoint
  std::vector<TargetEntry> tensors;
  std::vector<TargetNonTensorEntry> objects;
  std::vector<Mesh> meshes = {};
  std::vector<std::shared_ptr<const TargetTensor>> factors = {};
  std::vector<AddedInput> added = {};
  std::vector<std::string> dropped = {};  // FQNs of removed entries
  // Missing data of input 0: tensors that an index names but that have no data
  // (index_only_tensors.h), and unreadable files with unknown content. A result without them must
  // say so: a step drops them by name.
  std::set<std::string, std::less<>> nowhere = {};
  std::map<std::string, Loss> losses = {};  // by FQN in input 0: filled by earlier repairs
  std::int64_t trimmed = 0;                 // number of elements that no tensor has any more
  std::size_t step = 0;                     // the current step, from 1
  std::size_t steps_before = 0;             // number of earlier steps in the plan
  std::optional<EntryNames> names = {};     // set while steps are applied (named_entries.h)

  const Checkpoint& source() const { return *inputs.front(); }
};

// The unchanged checkpoint as a target.
TargetState target_state_of(std::shared_ptr<const Checkpoint> checkpoint);
// One tensor of an input with its chunks. kUnsupported if a chunk is not in the tensor.
Result<TargetTensor> target_tensor(const TargetState& all, std::uint32_t input, TensorId tensor);
// Boxes without an origin. kUnsupported if two parts overlap.
Result<std::vector<Box>> holes_in(const TargetTensor& tensor);

tl::unexpected<Error> cannot_make_target(std::string_view fqn, std::string why,
                                         std::string advice = {});

// --- moving boxes

// Maps box `from` of one tensor to offset `to` in another one. Dim d of the second is dim order[d]
// of the first, or a new dim of size one (-1). A dim of the first that is not in `order` must have
// size one in `from`.
struct BoxMapping {
  Box from;
  Extents to, order;
};
Extents identity_order(std::size_t ndim);
// Maps a whole tensor to an offset in a tensor of equal ndim.
BoxMapping shift_of(ExtentsView shape, Extents to);

// The mapped part of `box`; nullopt if it does not overlap.
std::optional<Box> moved_box(const Box& box, const BoxMapping& move);
// The mapped part of `part`, with its origin; nullopt if it does not overlap.
std::optional<Part> mapped_part(const Part& part, const BoxMapping& move);
// The part of `part` inside `box`, unmoved; nullopt if they do not overlap.
std::optional<Part> part_inside(const Part& part, const Box& box);
// The rest of `part` outside `box`.
std::vector<Part> subtract_box_from_part(const Part& part, const Box& box);

// Whether tiles move with their elements.
enum class TileMovement : std::uint8_t { kMoveWithElements, kKeepPlace };
// Appends the mapped boxes of `tensor` to `into`. The moves must not overlap.
void append_mapped(const TargetTensor& tensor, std::span<const BoxMapping> moves,
                   TileMovement tiles, TargetTensor& into);

// Parts of `tensor` that a tile consists of, cut to the tile.
std::vector<Part> parts_of_tile(const TargetTensor& tensor, const Box& tile);

// True if every value that a repair replaced in an entry still exists under another name.
bool keeps_every_value(const TargetState& all);

}  // namespace shw
