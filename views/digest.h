// What the views need of a Snapshot beyond looking things up: everything whose cost grows with
// tensors or chunks is computed here, once a snapshot and outside any frame. A pure function; parts
// are shared with the digest before where nothing that they depend on has changed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/mesh/infer.h"
#include "core/session/session.h"
#include "core/tiles/tile_set.h"
#include "views/color.h"
#include "views/tensor_modules.h"
#include "views/tile_paint.h"

namespace shw {

// Rows of the list: tensors in the snapshot's order, those of one module side by side under it.
struct ListGroup {
  std::string_view module;  // "layers.3.moe.experts"; empty: no module
  std::uint32_t first = 0, count = 0;
  std::uint32_t module_index = 0;  // of ListModel::names
};
// Layers with the same tensors, side by side: one row until it is opened.
struct ListRun {
  std::string title;  // "layers.0-60"; with what follows if it is the same in all
  std::uint32_t first_group = 0, groups = 0;
  std::uint32_t layers = 0;  // 0: no layer, its groups stand as they are
  std::uint32_t tensors_each = 0;
  bool odd = false;   // most of its siblings are made of other tensors
  bool gaps = false;  // of the numbers in the title some are not in it
};
struct ListModel {
  std::shared_ptr<const Checkpoint> checkpoint;
  std::shared_ptr<const TensorModules> names;               // null where nothing is open
  std::shared_ptr<const std::vector<std::uint32_t>> order;  // null: all, as recorded
  std::vector<ListGroup> groups;  // what a sort scatters is brought together again
  std::vector<ListRun> runs;      // of groups, in order; empty where no layer repeats
  std::size_t prefix = 0;         // bytes that all FQNs share ("model."), left out of modules
  std::uint32_t size() const;
  TensorId tensor(std::uint32_t row) const;
};

// What a rank has written of all tensors.
struct RankShare {
  std::uint32_t tensors = 0, tiles = 0;
  std::uint64_t bytes = 0;  // of its tiles' elements
};
struct MeshInfo {
  MeshGrid grid;
  std::uint32_t ranks = 0;
  std::vector<MeshAxis> axes;      // row-major over ranks; empty where nothing is known
  std::string text;                // "ep_shard 2 (rows) × ep 32 (columns) · read from writers"
  std::vector<MeshGuess> guesses;  // best first
  bool looked = false;             // false: too many chunks to infer anything
  std::vector<RankShare> shares;   // by rank; empty where nobody knows who wrote
};

struct CheckpointCard {
  std::string format, files, bytes, coverage;
  bool complete = false, coverage_known = false, sound = false;
};

// Where a part stands on a mesh axis that cuts the tensor: "ep_shard 1", along dim 2.
struct AxisPlace {
  int dim = 0;
  std::string text;
};

// Where a tile of the repaired tensor comes from.
struct TileOrigin {
  Extents was;       // its offsets in the saved tensor; empty where it stood in none
  std::string text;  // "was [2, 0]", "from weight_v", "from optimizer_rank_2.pt"
};

// One picture of the tensor that is selected.
struct Picture {
  TensorId tensor{};
  std::shared_ptr<const TileSet> saved;
  std::shared_ptr<const TileSet> after;  // null where no plan changes it
  std::vector<TileOrigin> origins;       // one a tile of `after`; empty: too many to say
  std::string after_text;                // "12 of 24 elements kept", "mended seams in gold"
  std::string fill_text;                 // "filled with zeros"; of what is lost
  std::shared_ptr<const TileSet> expected_tiles;        // null where the spec names no layout
  std::vector<std::vector<AxisPlace>> expected_places;  // of those: where on the mesh
  Extents expected;                                     // empty: not known
  bool expects = false;       // true: `expected` is (a scalar has no extents)
  std::string expected_from;  // "spec.json"
  std::vector<std::vector<std::int64_t>> expected_cuts;  // along every dim, inside the extent
  std::vector<std::string> cut_by;                       // "ep_shard": who cuts that dim
  std::vector<Box> missing, overlapping, lost;
  std::optional<std::size_t> finding;  // the first that names it
  Slice slice;                         // the look that shows what matters
};

// A part of the checkpoint: its tensors, what they take, and the filter that lists them.
struct SizeShare {
  std::string name, filter;
  std::size_t tensors = 0;
  double bytes = 0;
};
struct Overview {
  std::vector<SizeShare> modules, states, dtypes;
  std::vector<SizeShare> layers;  // that a finding names
};

inline constexpr std::uint8_t kFilled = 2;  // a mark like a warning's: something was filled in it
inline constexpr std::uint8_t kMended = 4;  // a mark: the repair has changed this tensor

struct Digest {
  std::shared_ptr<const Snapshot> snapshot;
  std::shared_ptr<const std::vector<std::uint8_t>> marks;  // a tensor: worst severity + 1, 0: none
  // The worst mark in each group of the list, then in each run.
  std::shared_ptr<const std::vector<std::uint8_t>> run_marks;
  std::size_t marked = 0;  // tensors that a warning or an error names
  std::shared_ptr<const ListModel> list;
  std::shared_ptr<const MeshInfo> mesh;
  std::shared_ptr<const CheckpointCard> facts;
  std::shared_ptr<const Overview> overview;
  std::shared_ptr<const Picture> picture;    // null where no tensor is selected
  std::shared_ptr<const TilePaints> paints;  // of the picture
};

std::shared_ptr<const Digest> make_digest(std::shared_ptr<const Snapshot> snapshot,
                                          const Digest* before = nullptr);

// Its parts.
std::shared_ptr<const std::vector<std::uint8_t>> make_marks(const Snapshot& snapshot);
// `before`: one whose names are read already where it is of the same checkpoint; may be null.
std::shared_ptr<const ListModel> make_list(const Snapshot& snapshot,
                                           const ListModel* before = nullptr);
std::shared_ptr<const std::vector<std::uint8_t>> make_run_marks(
    const ListModel& list, const std::vector<std::uint8_t>& marks);
std::shared_ptr<const MeshInfo> make_mesh(const Snapshot& snapshot);
std::shared_ptr<const CheckpointCard> make_card(const Snapshot& snapshot);
std::shared_ptr<const Overview> make_overview(const Snapshot& snapshot,
                                              const std::vector<std::uint8_t>& marks);
std::shared_ptr<const Picture> make_picture(const Snapshot& snapshot);

}  // namespace shw
