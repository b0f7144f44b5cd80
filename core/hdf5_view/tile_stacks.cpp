#include "core/hdf5_view/tile_stacks.h"

#include <algorithm>
#include <optional>
#include <tuple>

namespace shw {
namespace {

// Fewer tensors save less than a stack costs. More make reading one tensor slow, because the
// library searches the stack linearly.
constexpr std::size_t kLeastTensors = 4, kMaxTensors = 64;
constexpr std::size_t kMinTiles = 2;
constexpr std::size_t kMaxStackedDims = 31;  // a stack has one more; HDF5 allows 32

class Stacker {
 public:
  Stacker(const Checkpoint& checkpoint, TensorId first, std::span<const MappedTensor> tensors)
      : checkpoint_(checkpoint), first_(first), tensors_(tensors) {}

  std::vector<TileStack> run() const;

 private:
  // Hash of the properties that tensors in one stack share; different ones may collide.
  struct Candidate {
    std::uint64_t form = 0, offset = 0;
    std::size_t tensor = 0;
  };
  TensorId id(std::size_t tensor) const {
    return TensorId{static_cast<std::uint32_t>(index_of(first_) + tensor)};
  }
  std::uint64_t element(std::size_t tensor) const { return size_of(checkpoint_.dtype(id(tensor))); }
  bool is_candidate(std::size_t tensor) const;
  std::uint64_t form_of(std::size_t tensor) const;
  bool are_stackable(std::size_t one, std::size_t other) const;
  std::optional<std::vector<std::int64_t>> steps(std::size_t from, std::size_t to) const;

  const Checkpoint& checkpoint_;
  TensorId first_;
  std::span<const MappedTensor> tensors_;
};

bool Stacker::is_candidate(std::size_t tensor) const {
  const MappedTensor& mapped = tensors_[tensor];
  return mapped.mapping == Mapping::kTiles && mapped.tiles.size() >= kMinTiles &&
         checkpoint_.shape(id(tensor)).size() <= kMaxStackedDims &&
         std::all_of(mapped.tiles.begin(), mapped.tiles.end(), [](const MappedTile& tile) {
           return tile.count == 0 && tile.runs.size() == 1;
         });
}

std::uint64_t Stacker::form_of(std::size_t tensor) const {
  std::uint64_t form = 0xcbf29ce484222325;
  auto mix = [&](std::uint64_t value) { form = (form ^ value) * 0x9e3779b97f4a7c15; };
  mix(static_cast<std::uint64_t>(checkpoint_.dtype(id(tensor))));
  for (std::int64_t extent : checkpoint_.shape(id(tensor))) mix(static_cast<std::uint64_t>(extent));
  // Only tensors with equal alignment form a stack. Item lengths are unaligned, so of four
  // consecutive float32 tensors each may have another alignment.
  for (const MappedTile& tile : tensors_[tensor].tiles) {
    mix(index_of(tile.runs[0].file));
    mix(tile.runs[0].offset % element(tensor));
    for (std::int64_t offset : tile.box.offsets) mix(static_cast<std::uint64_t>(offset));
  }
  return form;
}

bool Stacker::are_stackable(std::size_t one, std::size_t other) const {
  const auto &left = tensors_[one].tiles, &right = tensors_[other].tiles;
  return checkpoint_.dtype(id(one)) == checkpoint_.dtype(id(other)) &&
         same(checkpoint_.shape(id(one)), checkpoint_.shape(id(other))) &&
         std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](const MappedTile& a, const MappedTile& b) {
                      return a.runs[0].file == b.runs[0].file && a.box == b.box;
                    });
}

// Distances in elements from the tiles of `from` to those of `to`; empty if they are not whole
// elements, or if the stacked tiles would overlap.
std::optional<std::vector<std::int64_t>> Stacker::steps(std::size_t from, std::size_t to) const {
  std::vector<std::int64_t> steps;
  const std::uint64_t size = element(from);
  for (std::size_t i = 0; i < tensors_[from].tiles.size(); ++i) {
    const ByteRun &near = tensors_[from].tiles[i].runs[0], &far = tensors_[to].tiles[i].runs[0];
    if (far.offset < near.offset + near.length || (far.offset - near.offset) % size != 0)
      return std::nullopt;
    steps.push_back(static_cast<std::int64_t>((far.offset - near.offset) / size));
  }
  return steps;
}

std::vector<TileStack> Stacker::run() const {
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (is_candidate(i)) candidates.push_back({form_of(i), tensors_[i].tiles[0].runs[0].offset, i});
  }
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return std::tie(a.form, a.offset, a.tensor) < std::tie(b.form, b.offset, b.tensor);
  });
  std::vector<TileStack> stacks;
  std::size_t next = 0;
  while (next + 1 < candidates.size()) {
    TileStack stack;
    stack.tensors.push_back(candidates[next].tensor);
    std::size_t last = next;
    while (last + 1 < candidates.size() && stack.tensors.size() < kMaxTensors) {
      const std::size_t from = stack.tensors.back(), to = candidates[last + 1].tensor;
      auto step = are_stackable(from, to) ? steps(from, to) : std::nullopt;
      if (!step || (stack.tensors.size() > 1 && *step != stack.steps)) break;
      stack.steps = std::move(*step);
      stack.tensors.push_back(to);
      ++last;
    }
    if (stack.tensors.size() >= kLeastTensors) {
      stacks.push_back(std::move(stack));
      next = last + 1;
    } else {
      next = std::max(last, next + 1);  // tensor `last` may start another stack
    }
  }
  return stacks;
}

}  // namespace

std::vector<TileStack> find_stacks(const Checkpoint& checkpoint, TensorId first,
                                   std::span<const MappedTensor> tensors) {
  return Stacker(checkpoint, first, tensors).run();
}

}  // namespace shw
