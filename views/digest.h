// Data derived from a Snapshot for the views: everything whose cost grows with tensors or chunks is
// computed here, once per snapshot and outside of frames. A pure function; unchanged parts are
// shared with the previous digest.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/mesh/infer.h"
#include "core/rules/damage.h"
#include "core/session/session.h"
#include "core/tiles/tile_set.h"
#include "core/verbs/run/run_matrix.h"
#include "views/color.h"
#include "views/finding_names.h"
#include "views/map/layer_matrix.h"
#include "views/map/tile_paint.h"
#include "views/panels/evidence_state.h"
#include "views/panels/file_shares.h"
#include "views/tensor_modules.h"

namespace shw {

using verbs::FirstAnomaly;
using verbs::RunCell;
using verbs::RunMatrix;
using verbs::RunMatrixRow;

// Rows of the list: tensors in snapshot order, grouped by module.
struct ListGroup {
  std::string_view module;  // "layers.3.moe.experts"; empty: no module
  std::uint32_t first = 0, count = 0;
  std::uint32_t module_index = 0;  // index in ListModel::names
};
// A run of layers with equal tensors, shown as one row until it is opened.
struct ListRun {
  std::string title;  // "layers.0-60", with a suffix if all share it
  std::uint32_t first_group = 0, groups = 0;
  std::uint32_t layers = 0;  // 0: not a run of layers
  std::uint32_t tensors_each = 0;
  bool odd = false;   // most sibling layers have other tensors
  bool gaps = false;  // the numbers in the title have gaps
};
struct ListModel {
  std::shared_ptr<const Checkpoint> checkpoint;
  std::shared_ptr<const TensorModules> names;               // null if nothing is open
  std::shared_ptr<const std::vector<std::uint32_t>> order;  // null: all, as recorded
  std::vector<ListGroup> groups;  // tensors of a group are kept together when sorted
  std::vector<ListRun> runs;      // of groups, in order; empty if no layer repeats
  std::size_t prefix = 0;         // length of the common FQN prefix ("model."), omitted in modules
  std::uint32_t size() const;
  TensorId tensor(std::uint32_t row) const;
};

struct MeshInfo {
  MeshGrid grid;
  std::uint32_t ranks = 0;
  std::vector<MeshAxis> axes;      // row-major over ranks; empty if unknown
  std::string text;                // "ep_shard 2 (rows) × ep 32 (columns) · read from writers"
  std::vector<MeshGuess> guesses;  // best first
  bool looked = false;             // false: too many chunks to infer a mesh
  std::vector<RankShare> shares;   // by rank; empty if writers are unknown
};

struct CheckpointCard {
  std::string format, files, bytes, coverage;
  bool complete = false, is_coverage_known = false, sound = false;
};

// Coordinate of a part on a mesh axis that splits the tensor: "ep_shard 1", along dim 2.
struct AxisPlace {
  int dim = 0;
  std::string text;
};

// The source of a tile in the repaired tensor.
struct TileOrigin {
  Extents was;       // offsets in the saved tensor; empty if it was not there
  std::string text;  // "was [2, 0]", "from weight_v", "from optimizer_rank_2.pt"
};

// The pictures of the selected tensor.
struct Picture {
  TensorId tensor{};
  std::shared_ptr<const TileSet> saved;
  std::shared_ptr<const TileSet> after;  // null if no plan changes it
  std::vector<TileOrigin> origins;       // one per tile of `after`; empty: too many
  std::string after_text;                // such as "12 of 24 elements kept", "mended seams in gold"
  std::string fill_text;                 // "filled with zeros", for lost elements
  std::shared_ptr<const TileSet> expected_tiles;        // null if the spec has no layout
  std::vector<std::vector<AxisPlace>> expected_places;  // mesh coordinates of expected tiles
  Extents expected;                                     // empty: unknown
  bool expects = false;       // true if `expected` is known (a scalar has no extents)
  std::string expected_from;  // "spec.json"
  std::vector<std::vector<std::int64_t>> expected_cuts;  // split positions per dim
  std::vector<std::string> cut_by;  // mesh axis that splits each dim: "ep_shard"
  // `filled`: an earlier repair wrote other values there. `lost`: what the plan cannot bring
  // back.
  std::vector<Box> missing, overlapping, filled, lost;
  std::string filled_note;             // "filled with zeros"
  std::optional<std::size_t> finding;  // the first finding about the tensor
  Slice slice;                         // default slice, which shows the relevant dims
};

// A group of tensors, their size, and the filter that lists them.
struct SizeShare {
  std::string name, filter;
  std::size_t tensors = 0;
  double bytes = 0;
  std::uint8_t mark = 0;  // the worst of its tensors
};
struct Overview {
  std::vector<LayerMatrix> matrices;
  FileShares files;
  std::vector<SizeShare> modules, states, dtypes;
  std::vector<SizeShare> layers;  // named by findings
};

inline constexpr std::uint8_t kFilled = 2;  // mark: values were filled in; severity of a warning
inline constexpr std::uint8_t kChangedByRepair = 4;  // mark: changed by the repair

// What findings affect, for every view: counts and places.
struct FindingEffects {
  std::vector<std::uint32_t> finding_of;  // per tensor: 1 + index of its worst finding, 0: none
  std::vector<std::uint8_t> files;        // per file: worst severity + 1, 0: no finding
  FindingNames names;
  AffectedCounts affected;  // by findings above info
  Unreadable unreadable;
  // Tensors in which NaN or infinity was counted where the rule `value-statistics` warns of it.
  std::size_t nan_tensors = 0, infinite_tensors = 0;
};

struct Digest {
  std::shared_ptr<const Snapshot> snapshot;
  std::shared_ptr<const std::vector<std::uint8_t>> marks;  // worst severity + 1, 0: none
  // The worst mark of each group of the list, then of each run.
  std::shared_ptr<const std::vector<std::uint8_t>> run_marks;
  std::shared_ptr<const FindingEffects> about;
  std::shared_ptr<const ListModel> list;
  std::shared_ptr<const MeshInfo> mesh;
  std::shared_ptr<const CheckpointCard> facts;
  std::shared_ptr<const Overview> overview;
  std::shared_ptr<const Picture> picture;                      // null if no tensor is selected
  std::shared_ptr<const TilePaints> paints;                    // of the picture
  std::shared_ptr<const RunMatrix> run;                        // null: no run is known
  std::shared_ptr<const std::vector<EvidenceTable>> evidence;  // of the shown finding; never null
};

std::shared_ptr<const Digest> make_digest(std::shared_ptr<const Snapshot> snapshot,
                                          const Digest* before = nullptr);

// The parts of a digest.
std::shared_ptr<const FindingEffects> make_finding_effects(const Snapshot& snapshot);
std::shared_ptr<const std::vector<std::uint8_t>> tensor_marks(const Snapshot& snapshot,
                                                              const FindingEffects& about);
// `before`: a previous model whose parsed names are reused for the same checkpoint; may be null.
std::shared_ptr<const ListModel> make_list(const Snapshot& snapshot,
                                           const ListModel* before = nullptr);
std::shared_ptr<const std::vector<std::uint8_t>> make_run_marks(
    const ListModel& list, const std::vector<std::uint8_t>& marks);
std::shared_ptr<const MeshInfo> make_mesh(const Snapshot& snapshot);
std::shared_ptr<const CheckpointCard> make_card(const Snapshot& snapshot);
std::shared_ptr<const Overview> make_overview(const Snapshot& snapshot,
                                              const std::vector<std::uint8_t>& marks,
                                              const FindingEffects& about, const ListModel& list);
std::shared_ptr<const Picture> make_picture(const Snapshot& snapshot, const FindingEffects& about);

}  // namespace shw
