// The tiles of the selected tensor: saved, expected and planned.
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "core/model/evidence.h"
#include "core/rules/rules.h"
#include "views/digest.h"
#include "views/text.h"

namespace shw {
namespace {

constexpr std::size_t kMaxOrigins = 4'096;  // with more tiles none is large enough for a label

std::string last_part(std::string_view path) {
  return std::string(path.substr(path.find_last_of('/') + 1));
}

// Collects the tiles of a planned tensor with their sources.
struct PlannedTiles {
  const Checkpoint& checkpoint;
  TensorId tensor;
  TileSet& tiles;
  std::vector<TileOrigin>& origins;

  void add(const Extents& offsets, const Extents& sizes, std::uint32_t writer, TileStatus status,
           ChunkId chunk, TileOrigin origin) {
    if (offsets.size() != tiles.ndim() || sizes.size() != tiles.ndim()) return;
    tiles.add(offsets, sizes, writer, status, chunk);
    if (origins.size() <= kMaxOrigins) origins.push_back(std::move(origin));
  }
  // A box of a source chunk; `source` is relative to the chunk.
  void add_source_box(const Extents& offsets, const Extents& sizes, ChunkId chunk,
                      const Extents* source) {
    auto from = checkpoint.offsets(chunk);
    TileOrigin origin{copy_of(from), ""};
    for (std::size_t d = 0; source && d < origin.was.size() && d < source->size(); ++d)
      origin.was[d] += (*source)[d];
    bool here = checkpoint.tensor_of(chunk) == tensor;
    bool moved = !here || origin.was != offsets;
    if (moved && origins.size() < kMaxOrigins) {
      std::string other = here ? "" : std::string(checkpoint.fqn(checkpoint.tensor_of(chunk)));
      if (!here) other = other.substr(module_length(other) > 0 ? module_length(other) + 1 : 0);
      origin.text = here ? "was " + to_text(ExtentsView(origin.was)) : "from " + other;
    }
    if (!here) origin.was.clear();
    add(offsets, sizes, checkpoint.writer(chunk).value_or(kNoWriter),
        moved ? TileStatus::kMoved : TileStatus::kFine, chunk, std::move(origin));
  }
};

Extents shifted(const Extents& offsets, const Extents& by) {
  Extents sum = offsets;
  for (std::size_t d = 0; d < sum.size() && d < by.size(); ++d) sum[d] += by[d];
  return sum;
}

// A relabelled item is one tile; a chunk assembled from pieces has one tile per piece, so that all
// writers are visible and gaps stay empty.
void plan_tiles(const Checkpoint& checkpoint, const PlannedTensor& planned, Picture& picture) {
  auto tiles = std::make_shared<TileSet>(planned.shape);
  PlannedTiles after{checkpoint, planned.tensor, *tiles, picture.origins};
  auto known = [&](ChunkId chunk) { return index_of(chunk) < checkpoint.chunk_count(); };
  bool sides = false, pieces = false, moved = false, turned = false;
  for (const PlannedChunk& chunk : planned.chunks) {
    if (chunk.item && known(*chunk.item)) {
      after.add_source_box(chunk.box.offsets, chunk.box.sizes, *chunk.item, nullptr);
      continue;
    }
    for (const Piece& piece : chunk.pieces) {
      if (known(piece.chunk))
        after.add_source_box(shifted(chunk.box.offsets, piece.at), sizes_in_new(piece), piece.chunk,
                             &piece.source.offsets);
      pieces = true;
      turned = turned || !piece.permutation.empty();
    }
    for (const ExternalPiece& side : chunk.external) {
      after.add(shifted(chunk.box.offsets, side.at), side.sizes, chunk.writer, TileStatus::kMoved,
                ChunkId::kNone, {{}, "from " + last_part(side.file)});
      sides = true;
    }
  }
  tiles->seal();
  moved = tiles->worst() == TileStatus::kMoved;
  if (picture.origins.size() > kMaxOrigins) picture.origins.clear();
  picture.lost = planned.lost;
  std::int64_t total = volume(planned.shape).value_or(0);
  if (planned.lost_elements > 0) {
    auto count = [](std::int64_t n) {
      return human_count(static_cast<std::uint64_t>(std::max<std::int64_t>(n, 0)));
    };
    picture.after_text =
        count(total - planned.lost_elements) + " of " + count(total) + " elements kept";
    picture.fill_text = planned.fill == Fill::kCast        ? "filled from the model"
                        : planned.fill == Fill::kReference ? "filled from elsewhere"
                                                           : "filled with zeros";
  } else if (sides) {
    picture.after_text = "from the ranks' own masters";
  } else if (turned) {
    picture.after_text = "dims exchanged";
  } else if (pieces) {
    picture.after_text = "rows where they belong";
  } else if (moved) {
    picture.after_text = "mended seams in gold";
  } else {
    picture.after_text = planned.fqn.empty() ? "the same tiles" : "named " + planned.fqn;
  }
  picture.after = std::move(tiles);
}

std::string filled_note(const Finding& finding, std::string_view fqn) {
  const auto* fills = find_evidence<std::vector<std::string>>(finding, "filled_with");
  const auto at = std::ranges::find(finding.subjects, fqn) - finding.subjects.begin();
  if (fills == nullptr || static_cast<std::size_t>(at) >= fills->size()) return {};
  return "filled with " + (*fills)[static_cast<std::size_t>(at)];
}

void collect_boxes(const Finding& finding, std::string_view fqn, std::size_t ndim,
                   Picture& picture) {
  for (const auto& [label, value] : finding.evidence) {
    const auto* boxes = std::get_if<std::vector<Box>>(&value);
    // Boxes with the label "belongs_at" mark where saved parts belong, not missing data.
    if (boxes == nullptr || label.starts_with("belongs")) continue;
    const std::vector<std::string>* inside = tensor_per_evidence_box(finding, boxes->size());
    // A box that may be of another subject is not drawn on this one.
    if (inside == nullptr && finding.subjects.size() > 1) continue;
    const bool overlap = rule_of(finding).boxes_overlap || label.find("overlap") != label.npos;
    const bool filled = label == "lost_boxes";
    auto& into = filled ? picture.filled : overlap ? picture.overlapping : picture.missing;
    for (std::size_t b = 0; b < boxes->size(); ++b) {
      const Box& box = (*boxes)[b];
      if (inside != nullptr && (*inside)[b] != fqn) continue;
      if (box.offsets.size() == ndim && box.sizes.size() == ndim) into.push_back(box);
    }
    if (filled && !into.empty()) picture.filled_note = filled_note(finding, fqn);
  }
}

std::optional<Extents> expected_of(const Diagnosis& diagnosis, TensorId tensor) {
  if (tensor_of(diagnosis) != tensor) return std::nullopt;
  return std::visit(
      [](const auto& kind) -> std::optional<Extents> {
        if constexpr (requires { kind.expected; }) return kind.expected;
        return std::nullopt;
      },
      diagnosis);
}

void set_expectation_from_spec(const SpecEntry& entry, Picture& picture) {
  picture.expects = true;
  picture.expected = entry.shape;
  picture.expected_cuts.resize(entry.shape.size());
  picture.cut_by.resize(entry.shape.size());
  if (!entry.mesh || entry.placements.size() != entry.mesh->axes.size()) return;
  for (std::size_t a = 0; a < entry.placements.size(); ++a) {
    const Placement& placement = entry.placements[a];
    const MeshAxis& axis = entry.mesh->axes[a];
    auto ndim = static_cast<std::int64_t>(entry.shape.size());
    std::int64_t dim = placement.dim < 0 ? placement.dim + ndim : placement.dim;
    if (placement.kind != Placement::Kind::kShard || axis.size < 2 || axis.size > 4096) continue;
    if (dim < 0 || dim >= ndim) continue;
    auto d = static_cast<std::size_t>(dim);
    auto& cuts = picture.expected_cuts[d];
    if (!picture.cut_by[d].empty()) {  // two axes split this dim: no single name
      cuts.clear();
      picture.cut_by[d] = "?";
      continue;
    }
    picture.cut_by[d] = axis.name;
    std::int64_t step = (entry.shape[d] + axis.size - 1) / axis.size;
    for (std::int64_t at = step; step > 0 && at < entry.shape[d]; at += step) cuts.push_back(at);
  }
}

// The expected boxes and their ranks by mesh and placements; replicas count once.
void set_expected_tiles(const SpecEntry& entry, std::uint32_t ranks, Picture& picture) {
  if (!entry.mesh || entry.placements.size() != entry.mesh->axes.size()) return;
  std::int64_t size = entry.mesh->size();
  if (size < 1 || size > static_cast<std::int64_t>(kMaxOrigins)) return;
  auto tiles = std::make_shared<TileSet>(entry.shape);
  std::set<Extents> seen;
  for (std::int64_t rank = 0; rank < size; ++rank) {
    auto box = local_box(entry.shape, *entry.mesh, entry.placements, rank);
    if (!box) return;
    if (std::find(box->sizes.begin(), box->sizes.end(), 0) != box->sizes.end()) continue;
    if (!seen.insert(box->offsets).second) continue;
    bool is_writer = size == static_cast<std::int64_t>(ranks);
    tiles->add(box->offsets, box->sizes, is_writer ? static_cast<std::uint32_t>(rank) : kNoWriter,
               TileStatus::kFine, ChunkId::kNone);
    auto at = entry.mesh->coordinates(rank);
    std::vector<AxisPlace> places;
    for (std::size_t a = 0; a < entry.placements.size(); ++a) {
      const Placement& placement = entry.placements[a];
      bool cuts = placement.kind == Placement::Kind::kShard ||
                  placement.kind == Placement::Kind::kStridedShard;
      if (!cuts || entry.mesh->axes[a].size < 2) continue;
      auto ndim = static_cast<std::int64_t>(entry.shape.size());
      places.push_back({static_cast<int>(placement.dim < 0 ? placement.dim + ndim : placement.dim),
                        fmt::format("{} {}", entry.mesh->axes[a].name, at[a])});
    }
    picture.expected_places.push_back(std::move(places));
  }
  tiles->seal();
  if (tiles->size() < 2) return;
  for (std::size_t d = 0; d < entry.shape.size(); ++d) {
    picture.expected_cuts[d].clear();
    for (std::int64_t cut : tiles->cuts(d)) {
      if (cut > 0) picture.expected_cuts[d].push_back(cut);
    }
  }
  picture.expected_tiles = std::move(tiles);
}

// The dims in the finding, otherwise split dims, otherwise the last two.
Slice choose_initial_slice(const Picture& picture, const Finding* finding) {
  const TileSet& tiles = *picture.saved;
  Slice slice;
  slice.at.assign(tiles.ndim(), 0);
  if (tiles.ndim() == 0) return slice;
  std::vector<std::size_t> wanted;
  auto want = [&](std::size_t d) {
    if (d < tiles.ndim() && std::find(wanted.begin(), wanted.end(), d) == wanted.end())
      wanted.push_back(d);
  };
  if (finding != nullptr) {
    for (const Diagnosis& diagnosis : finding->diagnoses) {
      const auto* moved = std::get_if<AxisMoved>(&diagnosis);
      if (moved == nullptr || moved->tensor != picture.tensor) continue;
      want(moved->grown);
      want(moved->shrunk);
    }
  }
  if (picture.expects && picture.expected.size() == tiles.ndim()) {
    for (std::size_t d = 0; d < tiles.ndim(); ++d) {
      if (picture.expected[d] != tiles.shape()[d]) want(d);
    }
  }
  std::vector<std::size_t> by_cuts;
  for (std::size_t d = tiles.ndim(); d-- > 0;) by_cuts.push_back(d);
  std::stable_sort(by_cuts.begin(), by_cuts.end(), [&](std::size_t a, std::size_t b) {
    return tiles.cuts(a).size() > tiles.cuts(b).size();
  });
  for (std::size_t d : by_cuts) want(d);
  if (tiles.ndim() == 1) {
    slice.column = 0;
    return slice;
  }
  slice.row = static_cast<int>(std::min(wanted[0], wanted[1]));
  slice.column = static_cast<int>(std::max(wanted[0], wanted[1]));
  return slice;
}

const PlannedTensor* planned(const Snapshot& snapshot) {
  if (snapshot.plan == nullptr) return nullptr;
  for (const PlannedTensor& tensor : snapshot.plan->tensors) {
    if (tensor.tensor == *snapshot.tensor) return &tensor;
  }
  return nullptr;
}

// "/runs/7/spec.json" gives "spec.json".
std::string file_name(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);
}

}  // namespace

std::shared_ptr<const Picture> make_picture(const Snapshot& snapshot, const FindingEffects& about) {
  if (snapshot.checkpoint == nullptr || !snapshot.tensor ||
      index_of(*snapshot.tensor) >= snapshot.checkpoint->tensor_count())
    return nullptr;
  const Checkpoint& checkpoint = *snapshot.checkpoint;
  auto picture = std::make_shared<Picture>();
  picture->tensor = *snapshot.tensor;
  picture->saved = saved_tiles(checkpoint, picture->tensor);
  std::string_view fqn = checkpoint.fqn(picture->tensor);
  if (snapshot.spec != nullptr) {
    if (const SpecEntry* entry = snapshot.spec->find(fqn)) {
      set_expectation_from_spec(*entry, *picture);
      set_expected_tiles(*entry, checkpoint.rank_count(), *picture);
      picture->expected_from = file_name(snapshot.spec->source);
    }
  }
  const Finding* naming = nullptr;
  if (snapshot.report != nullptr) {
    const auto& findings = snapshot.report->findings;
    for (std::size_t f = 0; f < findings.size(); ++f) {
      const auto& subjects = findings[f].subjects;
      if (std::find(subjects.begin(), subjects.end(), fqn) == subjects.end()) continue;
      collect_boxes(findings[f], fqn, checkpoint.shape(picture->tensor).size(), *picture);
      if (naming == nullptr) {
        naming = &findings[f];
        picture->finding = f;
      }
      for (const Diagnosis& diagnosis : findings[f].diagnoses) {
        auto expected = expected_of(diagnosis, picture->tensor);
        if (!expected || picture->expects) continue;
        picture->expects = true;
        picture->expected = *expected;
        picture->expected_from =
            snapshot.options.against.empty() ? "its siblings" : last_part(snapshot.options.against);
      }
    }
  }
  const std::size_t t = index_of(picture->tensor);
  if (!picture->finding && t < about.finding_of.size() && about.finding_of[t] != 0)
    picture->finding = about.finding_of[t] - 1;
  picture->expected_cuts.resize(picture->expected.size());
  picture->cut_by.resize(picture->expected.size());
  if (const PlannedTensor* plan = planned(snapshot)) plan_tiles(checkpoint, *plan, *picture);
  picture->slice = choose_initial_slice(*picture, naming);
  return picture;
}

}  // namespace shw
