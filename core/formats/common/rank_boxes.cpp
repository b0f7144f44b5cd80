#include "core/formats/common/rank_boxes.h"

#include <algorithm>

#include "core/base/words.h"

namespace shw {
namespace {

struct BoxRun {
  std::int64_t first = 0, size = 0;
};
using Runs = std::vector<BoxRun>;
// Exceeds the pieces of an axis that two mesh axes cut.
constexpr std::int64_t kMaxStrides = 1 << 12;

std::int64_t length_of(const Runs& runs) {
  std::int64_t length = 0;
  for (const BoxRun& run : runs) length += run.size;
  return length;
}

// Elements [first, last) of the concatenated runs.
Runs slice_of_runs(const Runs& runs, std::int64_t first, std::int64_t last) {
  Runs out;
  std::int64_t before = 0;
  for (const BoxRun& run : runs) {
    const std::int64_t begin = std::max(first - before, std::int64_t{0});
    const std::int64_t end = std::min(last - before, run.size);
    if (begin < end) {
      // Merges adjacent runs.
      if (!out.empty() && out.back().first + out.back().size == run.first + begin)
        out.back().size += end - begin;
      else
        out.push_back({run.first + begin, end - begin});
    }
    before += run.size;
  }
  return out;
}

// Like torch.chunk: all parts have the first one's length except the last ones.
Runs part_of(const Runs& runs, std::int64_t parts, std::int64_t index) {
  const std::int64_t length = length_of(runs);
  const std::int64_t each = length / parts + (length % parts != 0 ? 1 : 0);
  if (each == 0 || index > length / each) return {};
  return slice_of_runs(runs, std::min(index * each, length), std::min((index + 1) * each, length));
}

// The numbers in "Shard(1)" or "_StridedShard(dim=0, sf=2)".
std::vector<std::int64_t> numbers_in(std::string_view text) {
  std::vector<std::int64_t> out;
  while (!text.empty()) {
    const bool is_digit = text.front() >= '0' && text.front() <= '9';
    auto number = is_digit ? consume_number(text) : std::nullopt;
    if (number)
      out.push_back(*number);
    else
      text.remove_prefix(1);
  }
  return out;
}

Status split_runs_by_placement(const std::string& placement, std::int64_t parts, std::int64_t index,
                               std::vector<Runs>& axes) {
  if (placement.starts_with("Replicate")) return {};
  const auto numbers = numbers_in(placement);
  const bool is_strided = placement.starts_with("_StridedShard");
  const bool is_cut = placement.starts_with("Shard") || is_strided;
  if (!is_cut || numbers.empty() || placement.find('-') != std::string::npos ||
      numbers[0] >= static_cast<std::int64_t>(axes.size()) ||
      (is_strided && (numbers.size() != 2 || numbers[1] <= 0 || numbers[1] > kMaxStrides)))
    return fail(ErrorKind::kUnsupported, "has an unsupported placement: " + placement);
  Runs& runs = axes[static_cast<std::size_t>(numbers[0])];
  if (!is_strided) {
    runs = part_of(runs, parts, index);
    return {};
  }
  Runs all;
  for (std::int64_t piece = 0; piece < numbers[1]; ++piece) {
    for (const BoxRun& run : part_of(part_of(runs, numbers[1], piece), parts, index))
      all.push_back(run);
  }
  runs = slice_of_runs(all, 0, length_of(all));
  return {};
}

Result<std::vector<Box>> boxes_of_axes(const std::vector<Runs>& axes) {
  Box box;
  std::optional<std::size_t> several;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].empty()) return std::vector<Box>{};
    if (axes[i].size() > 1 && several)
      return fail(ErrorKind::kUnsupported, "has strided shards along two axes");
    if (axes[i].size() > 1) several = i;
    box.offsets.push_back(axes[i][0].first);
    box.sizes.push_back(axes[i][0].size);
  }
  if (!several) return std::vector<Box>{box};
  std::vector<Box> boxes;
  for (const BoxRun& run : axes[*several]) {
    box.offsets[*several] = run.first;
    box.sizes[*several] = run.size;
    boxes.push_back(box);
  }
  return boxes;
}

// Row-major index in the mesh; empty if the rank is not part of it.
std::optional<Extents> place_on_mesh(const DTensorSharding& sharding, std::int64_t rank) {
  const Extents& shape = sharding.mesh.shape;
  if (sharding.coordinate && sharding.coordinate->size() == shape.size())
    return sharding.coordinate;
  std::int64_t at = rank;
  if (const auto& ranks = sharding.mesh.ranks; !ranks.empty())
    at = std::find(ranks.begin(), ranks.end(), rank) - ranks.begin();
  Extents place(shape.size(), 0);
  for (std::size_t i = shape.size(); i-- > 0;) {
    place[i] = at % shape[i];
    at /= shape[i];
  }
  return at == 0 ? std::optional(place) : std::nullopt;
}

}  // namespace

Result<std::vector<Box>> boxes_of_sharding(const DTensorSharding& sharding, std::int64_t rank) {
  const Extents& mesh = sharding.mesh.shape;
  const bool is_mesh = std::all_of(mesh.begin(), mesh.end(), [](auto size) { return size > 0; });
  if (!is_mesh || mesh.size() != sharding.placements.size() || mesh.empty())
    return fail(ErrorKind::kUnsupported, "does not record its mesh");
  if (!volume(sharding.global_shape))
    return fail(ErrorKind::kUnsupported, "does not record its global shape");
  const auto place = place_on_mesh(sharding, rank);
  if (!place) return fail(ErrorKind::kUnsupported, "has a position outside its mesh");
  std::vector<Runs> axes;
  for (std::int64_t size : sharding.global_shape)
    axes.push_back(size == 0 ? Runs{} : Runs{{0, size}});
  for (std::size_t i = 0; i < mesh.size(); ++i) {
    if ((*place)[i] < 0 || (*place)[i] >= mesh[i])
      return fail(ErrorKind::kUnsupported, "has a position outside its mesh");
    SHW_CHECK(split_runs_by_placement(sharding.placements[i], mesh[i], (*place)[i], axes));
  }
  return boxes_of_axes(axes);
}

}  // namespace shw
