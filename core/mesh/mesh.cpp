#include "core/mesh/mesh.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <set>

#include "core/base/checked.h"
#include "core/base/letter_case.h"
#include "core/base/parse_text.h"
#include "core/tensor/even_cut.h"

namespace shw {
namespace {

// More ranks than any cluster has: a larger mesh is a typing error, and would be iterated rank by
// rank for each tensor.
constexpr std::int64_t kMaxRanks = std::int64_t{1} << 20;
// Runs per dimension and rank; torch cannot write layouts with more.
constexpr std::int64_t kMaxRuns = 1 << 16;

// Parses "2", "dim=2" or "sf=2": a number with or without one of its names.
std::optional<std::int64_t> argument(std::string_view text,
                                     std::initializer_list<std::string_view> names) {
  std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) return parse_number<std::int64_t>(text);
  std::string_view name = trim(text.substr(0, equals));
  if (std::find(names.begin(), names.end(), name) == names.end()) return std::nullopt;
  return parse_number<std::int64_t>(trim(text.substr(equals + 1)));
}

// Adjacent rows of one dimension that a rank holds.
struct Run {
  std::int64_t start = 0;
  std::int64_t length = 0;
};

void append(std::vector<Run>& runs, Run run) {
  if (run.length == 0) return;
  if (!runs.empty() && runs.back().start + runs.back().length == run.start)
    runs.back().length += run.length;
  else
    runs.push_back(run);
}

// Appends rows [cut.offset, cut.offset + cut.size) of the rows listed by `runs`.
void append_part(std::vector<Run>& out, const std::vector<Run>& runs, Cut cut) {
  std::int64_t skipped = 0;
  for (const Run& run : runs) {
    std::int64_t begin = std::max<std::int64_t>(cut.offset - skipped, 0);
    std::int64_t end = std::min(cut.offset + cut.size - skipped, run.length);
    if (begin < end) append(out, {run.start + begin, end - begin});
    skipped += run.length;
  }
}

std::int64_t total(const std::vector<Run>& runs) {
  std::int64_t sum = 0;
  for (const Run& run : runs) sum += run.length;
  return sum;
}

Result<std::vector<Run>> apply(const Placement& placement, const std::vector<Run>& runs,
                               std::int64_t parts, std::int64_t index) {
  std::vector<Run> out;
  std::int64_t extent = total(runs);
  if (placement.kind == Placement::Kind::kShard) {
    append_part(out, runs, chunk_of(extent, parts, index));
    return out;
  }
  for (std::int64_t piece = 0; piece < placement.split_factor; ++piece) {
    Cut outer = chunk_of(extent, placement.split_factor, piece);
    if (outer.size == 0) break;
    if (piece >= kMaxRuns)
      return fail(ErrorKind::kUnsupported,
                  fmt::format("a split factor of {} leaves rows in too many pieces",
                              placement.split_factor));
    Cut inner = chunk_of(outer.size, parts, index);
    append_part(out, runs, {outer.offset + inner.offset, inner.size});
  }
  return out;
}

Status check_placement(const Placement& placement, std::size_t ndim) {
  auto dims = static_cast<std::int64_t>(ndim);
  if (placement.dim < -dims || placement.dim >= dims)
    return fail(ErrorKind::kUsage,
                fmt::format("{} names a dimension that a tensor of {} dimensions does not have",
                            to_text(placement), ndim));
  if (placement.split_factor < 1)
    return fail(ErrorKind::kUsage, to_text(placement) + " has no positive split factor");
  return {};
}

}  // namespace

std::int64_t Mesh::size() const {
  std::int64_t ranks = 1;
  for (const MeshAxis& axis : axes)
    ranks = checked_mul(ranks, axis.size).value_or(std::numeric_limits<std::int64_t>::max());
  return ranks;
}

std::vector<std::int64_t> Mesh::coordinates(std::int64_t rank) const {
  std::vector<std::int64_t> out(axes.size());
  for (std::size_t i = axes.size(); i-- > 0;) {
    out[i] = rank % axes[i].size;
    rank /= axes[i].size;
  }
  return out;
}

std::int64_t Mesh::rank(const std::vector<std::int64_t>& coordinates) const {
  std::int64_t rank = 0;
  for (std::size_t i = 0; i < axes.size(); ++i) rank = rank * axes[i].size + coordinates[i];
  return rank;
}

std::optional<Placement> parse_placement(std::string_view text) {
  text = trim(text);
  const std::string name = lowered(trim(text.substr(0, text.find('('))));
  std::string_view inside;
  if (name.size() != text.size()) {
    if (!text.ends_with(')')) return std::nullopt;
    inside = text.substr(text.find('(') + 1);
    inside = trim(inside.substr(0, inside.size() - 1));
  }
  if (name == "replicate" || name == "r")
    return inside.empty() ? std::optional(Placement{}) : std::nullopt;
  if (name == "partial" || name == "p") return Placement{Placement::Kind::kPartial, 0, 1};
  auto arguments = split_at(inside, ',');
  for (std::string_view& one : arguments) one = trim(one);
  auto dim = argument(arguments[0], {"dim"});
  if (!dim) return std::nullopt;
  if (name == "shard" || name == "s") {
    if (arguments.size() != 1) return std::nullopt;
    return Placement{Placement::Kind::kShard, *dim, 1};
  }
  if (name == "stridedshard" || name == "_stridedshard" || name == "ss" || name == "_s") {
    if (arguments.size() != 2) return std::nullopt;
    auto factor = argument(arguments[1], {"sf", "split_factor"});
    if (!factor || *factor < 1) return std::nullopt;
    return Placement{Placement::Kind::kStridedShard, *dim, *factor};
  }
  return std::nullopt;
}

std::string to_text(const Placement& placement) {
  switch (placement.kind) {
    case Placement::Kind::kReplicate:
      return "Replicate";
    case Placement::Kind::kPartial:
      return "Partial";
    case Placement::Kind::kShard:
      return fmt::format("Shard({})", placement.dim);
    case Placement::Kind::kStridedShard:
      break;
  }
  return fmt::format("StridedShard({}, sf={})", placement.dim, placement.split_factor);
}

std::string to_text(const std::vector<Placement>& placements) {
  std::string text;
  for (const Placement& placement : placements) {
    if (!text.empty()) text += ", ";
    text += to_text(placement);
  }
  return text;
}

Result<Mesh> parse_mesh(std::string_view text) {
  auto wrong = [&](std::string_view why) {
    return fail(ErrorKind::kUsage,
                "\"" + std::string(text) + "\" is not a mesh: " + std::string(why), {},
                "write axes as name=size, outermost first: dp=4,tp=2");
  };
  Mesh mesh;
  std::set<std::string, std::less<>> names;
  for (std::string_view part : split_at(text, ',')) {
    std::size_t at = part.find_first_of("=:");
    if (at == std::string_view::npos) return wrong("an axis has a name and a size");
    std::string name(trim(part.substr(0, at)));
    auto size = parse_number<std::int64_t>(trim(part.substr(at + 1)));
    if (name.empty()) return wrong("an axis has no name");
    if (!size || *size < 1) return wrong("the size of " + name + " is not a positive number");
    if (!names.insert(name).second) return wrong(name + " occurs twice");
    mesh.axes.push_back({std::move(name), *size});
    if (mesh.size() > kMaxRanks)
      return wrong("it has more than 1,048,576 ranks, and no cluster has");
  }
  return mesh;
}

std::string to_text(const Mesh& mesh) {
  std::string text;
  for (const MeshAxis& axis : mesh.axes) {
    if (!text.empty()) text += " x ";
    text += fmt::format("{} {}", axis.name, axis.size);
  }
  return text;
}

std::string mesh_option_text(const Mesh& mesh) {
  std::string text;
  for (const MeshAxis& axis : mesh.axes)
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", axis.name, axis.size);
  return text;
}

std::vector<MeshAxis> axes_longer_than_one(const Mesh& mesh) {
  std::vector<MeshAxis> axes;
  for (const MeshAxis& axis : mesh.axes) {
    if (axis.size > 1) axes.push_back(axis);
  }
  return axes;
}

Cut chunk_of(std::int64_t extent, std::int64_t parts, std::int64_t index) {
  const EvenCut cut = even_cut(extent, parts, index);
  return {cut.offset, cut.size};
}

namespace {

// The rows that the rank holds, per dimension.
Result<std::vector<std::vector<Run>>> rows_of_rank(ExtentsView shape, const Mesh& mesh,
                                                   const std::vector<Placement>& placements,
                                                   std::int64_t rank) {
  if (rank < 0 || rank >= mesh.size())
    return fail(ErrorKind::kUsage, fmt::format("rank {} is not on the mesh {} of {}", rank,
                                               to_text(mesh), mesh.size()));
  if (placements.size() > mesh.axes.size())
    return fail(ErrorKind::kUsage, "more placements (" + to_text(placements) +
                                       ") than the mesh has axes (" + to_text(mesh) + ")");
  std::vector<std::int64_t> coordinates = mesh.coordinates(rank);
  std::vector<std::vector<Run>> held(shape.size());
  for (std::size_t d = 0; d < shape.size(); ++d) append(held[d], {0, shape[d]});
  for (std::size_t i = 0; i < placements.size(); ++i) {
    const Placement& placement = placements[i];
    if (placement.kind == Placement::Kind::kReplicate) continue;
    if (placement.kind == Placement::Kind::kPartial) continue;  // the whole extent, unreduced
    SHW_CHECK(check_placement(placement, shape.size()));
    auto d = static_cast<std::size_t>(placement.dim < 0
                                          ? placement.dim + static_cast<std::int64_t>(shape.size())
                                          : placement.dim);
    SHW_TRY(held[d], apply(placement, held[d], mesh.axes[i].size, coordinates[i]));
  }
  return held;
}

}  // namespace

Result<Box> local_box(ExtentsView shape, const Mesh& mesh, const std::vector<Placement>& placements,
                      std::int64_t rank) {
  SHW_TRY(auto held, rows_of_rank(shape, mesh, placements, rank));
  Box box{Extents(shape.size()), Extents(shape.size())};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (held[d].size() > 1)
      return fail(ErrorKind::kUnsupported,
                  fmt::format("rank {} holds rows of dimension {} in {} pieces, which is not a box",
                              rank, d, held[d].size()));
    box.offsets[d] = held[d].empty() ? shape[d] : held[d][0].start;
    box.sizes[d] = held[d].empty() ? 0 : held[d][0].length;
  }
  return box;
}

Result<std::vector<Box>> local_boxes(ExtentsView shape, const Mesh& mesh,
                                     const std::vector<Placement>& placements, std::int64_t rank) {
  SHW_TRY(auto held, rows_of_rank(shape, mesh, placements, rank));
  std::vector<Box> boxes{{{}, {}}};
  for (const std::vector<Run>& runs : held) {
    std::vector<Box> longer;
    for (const Box& box : boxes) {
      for (const Run& run : runs) {
        longer.push_back(box);
        longer.back().offsets.push_back(run.start);
        longer.back().sizes.push_back(run.length);
      }
    }
    boxes = std::move(longer);
    if (boxes.size() > static_cast<std::size_t>(kMaxRuns))
      return fail(ErrorKind::kUnsupported, fmt::format("rank {} holds too many pieces", rank));
  }
  return boxes;
}

}  // namespace shw
