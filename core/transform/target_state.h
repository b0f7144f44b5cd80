// What a new checkpoint is to hold, while steps are still being taken: every tensor as boxes, and
// for every box where its elements come from. Steps move boxes and never touch a byte; when the
// last one is taken, the whole is lowered to a program at once (lower.h), so that any chain of
// steps costs one pass over the bytes.
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

// --- where elements come from

struct FromChunk {
  std::uint32_t input = 0;  // in TargetState::inputs
  ChunkId chunk{};
};
// A row-major payload in a file of input 0 that no record names.
struct FromFile {
  std::string file;
  std::uint64_t offset = 0, length = 0;
  Extents sizes;
};
// One element, little-endian, in the dtype that the part ends in.
struct FromConstant {
  std::array<std::uint64_t, 2> bits{0, 0};
  bool is_padding = false;  // stands where nothing was ever saved: who cuts it off loses nothing
};

// Factors of blocks of a quantised weight: element i of the part has the one at
// (first[e] + i[order[e]]) / block[e] in every dim e of the tensor of factors.
struct Scaling {
  std::uint32_t factors = 0;  // in TargetState::factors
  Extents first, block, order;
};

using PartSource = std::variant<FromChunk, BoxedOptional<FromFile>, FromConstant>;

// A box of a tensor. Dim d of it runs along dim order[d] of where its elements lie, and is of one
// element where that is -1; it begins there at `first`, which has a number for every dim of that.
struct Part {
  Box box;
  PartSource from;
  Extents first = {}, order = {};
  Dtype saved = Dtype::kUnknown;  // of the elements there
  // What they become one after the other; the last one is the tensor's. Empty: they stay as saved.
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

// How a tensor is cut. Of what a repair alone leaves, a tile may have `kept`: it is the item of
// that chunk of input 0 as it lies, whatever its record says, and is made of no part.
using TargetChunk = OutputTile;

// Elements whose own value is gone, and what stands there now ("zero", "cast", "from", "side",
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
  std::vector<TargetChunk> tiles;  // how it is to be cut
  std::vector<PathPart> path = {};
  std::optional<TensorId> before = {};  // of input 0: the one that it was, and nothing else
  Loss loss = {};
  bool is_cast = false;      // values were rounded on the way
  bool is_moved = false;     // elements lie at other indices than in what they were
  std::int64_t padding = 0;  // TensorCertificate::padding: what a repair cut off its end
};

// How a tensor is cut where its tiles are not named one by one.
struct WholeTiling {};
struct MeshTiling {
  std::uint32_t mesh = 0;  // in TargetState::meshes
  std::vector<Placement> placements;
  std::size_t step = 0;  // that asked for it, from 1: what is wrong with it is found later
};
using NewTiling = std::variant<std::monostate, WholeTiling, MeshTiling>;

class PackedTensor;  // packed_tensor.h

struct TargetEntry {
  std::string fqn;
  TensorId as_saved{};                         // of input 0, where nothing was done to it yet
  std::shared_ptr<const PackedTensor> made{};  // else this
  NewTiling tiling{};
};

struct TargetNonTensorEntry {
  std::size_t object = 0;  // in objects() of input 0: whose value it has
  std::string fqn;
  std::vector<PathPart> path;
  std::size_t own = object;  // whose place it has: another one where a repair replaced its value
};

struct TargetState {
  std::vector<std::shared_ptr<const Checkpoint>> inputs;  // 0: what the plan is for
  std::vector<TargetEntry> tensors;
  std::vector<TargetNonTensorEntry> objects;
  std::vector<Mesh> meshes = {};
  std::vector<std::shared_ptr<const TargetTensor>> factors = {};
  std::vector<std::string> dropped = {};  // what was there and is not any more
  // Of input 0: tensors of which an index has the name and nothing else is there
  // (index_only_tensors.h), and files that cannot be read where nobody knows what they held. What
  // is written without them must say so: a step drops them by name.
  std::set<std::string, std::less<>> nowhere = {};
  std::map<std::string, Loss> losses = {};  // of input 0, by FQN: what earlier repairs filled
  std::int64_t trimmed = 0;                 // elements that no tensor holds any more
  std::size_t step = 0;                     // that is being taken, from 1
  std::size_t steps_before = 0;             // steps of the plan before those that are taken
  std::optional<EntryNames> names = {};     // while steps are taken (named_entries.h)

  const Checkpoint& source() const { return *inputs.front(); }
};

// Everything as it is.
TargetState target_state_of(std::shared_ptr<const Checkpoint> checkpoint);
// One tensor of an input with the chunks that it has. kUnsupported where a chunk is no box of it.
Result<TargetTensor> target_tensor(const TargetState& all, std::uint32_t input, TensorId tensor);
// How many elements of it come from nowhere. kUnsupported where two parts hold the same ones.
Result<std::vector<Box>> holes_in(const TargetTensor& tensor);

tl::unexpected<Error> cannot_make_target(std::string_view fqn, std::string why,
                                         std::string advice = {});

// --- boxes on their way

// `from`, a box of a tensor, becomes the box at `to` of another one, whose dim d is dim order[d] of
// the first, or a new one of one element (-1). A dim that does not come along has one element.
struct BoxMapping {
  Box from;
  Extents to, order;
};
Extents same_order(std::size_t ndim);
// All of a tensor, to another place in one that has as many dims.
BoxMapping shift_of(ExtentsView shape, Extents to);

// The part of `box` that moves, where it goes; nothing where none does.
std::optional<Box> moved_box(const Box& box, const BoxMapping& move);
// The same of a part, with where its elements come from.
std::optional<Part> mapped_part(const Part& part, const BoxMapping& move);
// What of a part lies in `box`, where it lies; nothing where nothing does.
std::optional<Part> part_inside(const Part& part, const Box& box);
// The part without `box`.
std::vector<Part> part_without(const Part& part, const Box& box);

// Tiles of a tensor that moves.
enum class TilesGo : std::uint8_t { kAlong, kStay };
// `tensor` after the moves, which meet nowhere, in `shape`.
void append_mapped(const TargetTensor& tensor, std::span<const BoxMapping> moves, TilesGo tiles,
                   TargetTensor& into);

// The part of `tensor` that one tile is made of; each part cut to the tile.
std::vector<Part> parts_of_tile(const TargetTensor& tensor, const Box& tile);

// Whether every value of an entry that another entry's replaces is still there under some name.
bool keeps_every_value(const TargetState& all);

}  // namespace shw
