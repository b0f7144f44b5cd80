#include "core/mesh/infer.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "core/base/cancellable_range.h"
#include "core/mesh/torch_offset_bugs.h"

namespace shw {
namespace {

constexpr std::size_t kLayouts = 64;      // distinct layouts examined
constexpr std::uint32_t kChunks = 4096;   // per tensor
constexpr std::int64_t kRanks = 1 << 16;  // per guessed mesh
constexpr std::size_t kAxes = 3;          // per guessed mesh

// The layout of a tensor: which rank wrote which box. Tensors of equal layout are examined once.
struct ShardedLayout {
  std::vector<TensorId> tensors;  // tensors with this layout
  Extents shape;
  std::vector<std::pair<std::int64_t, Box>> chunks;  // writer and non-empty box
  std::vector<std::int64_t> empty;                   // ranks that wrote a chunk without elements
};

std::optional<ShardedLayout> sharded_layout_of(const Checkpoint& c, TensorId tensor) {
  ShardedLayout cutting{{tensor}, copy_of(c.shape(tensor)), {}, {}};
  auto chunks = c.chunks(tensor);
  if (chunks.size() < 2 || chunks.size() > kChunks) return std::nullopt;
  for (ChunkId chunk : chunks) {
    if (!is_inside(c.offsets(chunk), c.sizes(chunk), c.shape(tensor))) return std::nullopt;
    auto writer = c.writer(chunk);
    if (!writer) return std::nullopt;
    if (volume(c.sizes(chunk)) == 0) {
      cutting.empty.push_back(*writer);
      continue;
    }
    cutting.chunks.emplace_back(*writer, box_of(c, chunk));
  }
  if (cutting.chunks.size() < 2) return std::nullopt;
  return cutting;
}

bool have_same_layout(const ShardedLayout& a, const ShardedLayout& b) {
  return a.shape == b.shape && a.chunks == b.chunks && a.empty == b.empty;
}

std::vector<ShardedLayout> sharded_layouts_of(const Checkpoint& c, const Progress* progress) {
  std::vector<ShardedLayout> all;
  std::multimap<std::size_t, std::size_t> by_size;  // by number of chunks
  for (TensorId tensor : cancellable_range(c.tensors(), progress)) {
    auto cutting = sharded_layout_of(c, tensor);
    if (!cutting) continue;
    auto [first, last] = by_size.equal_range(cutting->chunks.size());
    auto known = std::find_if(first, last, [&](const auto& item) {
      return have_same_layout(all[item.second], *cutting);
    });
    if (known != last) {
      all[known->second].tensors.push_back(tensor);
    } else if (all.size() < kLayouts) {
      by_size.emplace(cutting->chunks.size(), all.size());
      all.push_back(std::move(*cutting));
    }
  }
  return all;
}

bool predicts_all_chunks(const Mesh& mesh, const std::vector<Placement>& placements,
                         const ShardedLayout& cutting) {
  auto gives = [&](std::int64_t rank) {
    return box_of_nested_splits(cutting.shape, mesh, placements, rank);
  };
  return std::all_of(cutting.chunks.begin(), cutting.chunks.end(),
                     [&](const auto& chunk) {
                       auto box = gives(chunk.first);
                       return box && *box == chunk.second;
                     }) &&
         std::all_of(cutting.empty.begin(), cutting.empty.end(), [&](std::int64_t rank) {
           auto box = gives(rank);
           return box && is_empty(*box);
         });
}

// True if the layout has as many distinct non-empty boxes as the tensor has chunks.
bool has_equal_box_count(const Mesh& mesh, const std::vector<Placement>& placements,
                         const ShardedLayout& cutting) {
  std::vector<Extents> starts;
  for (std::int64_t rank = 0; rank < mesh.size(); ++rank) {
    auto box = box_of_nested_splits(cutting.shape, mesh, placements, rank);
    if (!box) return false;
    if (!is_empty(*box)) starts.push_back(box->offsets);
  }
  std::sort(starts.begin(), starts.end());
  auto distinct = std::unique(starts.begin(), starts.end()) - starts.begin();
  return static_cast<std::size_t>(distinct) == cutting.chunks.size();
}

// Enumerates the placements of every axis: replicated, or one of the dimensions; strided too if a
// later axis splits the same dimension.
class Choices {
 public:
  Choices(const Mesh& mesh, std::size_t ndim) : mesh_(mesh), ndim_(ndim) {
    digits_.assign(mesh.axes.size(), 0);
  }
  std::vector<Placement> placements() const {
    std::vector<Placement> out(digits_.size());
    for (std::size_t i = digits_.size(); i-- > 0;) {
      if (digits_[i] == 0) continue;
      std::size_t dim = (digits_[i] - 1) % ndim_;
      out[i] = {Placement::Kind::kShard, static_cast<std::int64_t>(dim), 1};
      if (digits_[i] <= ndim_) continue;
      // A strided split whose factor is the product of later axes that split the dimension.
      out[i].kind = Placement::Kind::kStridedShard;
      out[i].split_factor = 1;
      for (std::size_t j = i + 1; j < out.size(); ++j) {
        if (out[j].kind != Placement::Kind::kReplicate && out[j].dim == out[i].dim)
          out[i].split_factor *= mesh_.axes[j].size;
      }
    }
    return out;
  }
  bool next() {
    for (std::size_t& digit : digits_) {
      if (++digit <= 2 * ndim_) return true;
      digit = 0;
    }
    return false;
  }

 private:
  const Mesh& mesh_;
  std::size_t ndim_;
  std::vector<std::size_t> digits_;
};

// False if an equivalent layout with simpler placements exists, or if the mesh has fewer parts than
// the tensor has chunks.
bool can_explain(const Mesh& mesh, const std::vector<Placement>& placements,
                 const ShardedLayout& cutting) {
  std::int64_t parts = 1;
  for (std::size_t i = 0; i < placements.size(); ++i) {
    if (placements[i].kind == Placement::Kind::kReplicate) continue;
    bool cuts_nothing_before =
        placements[i].kind == Placement::Kind::kStridedShard && placements[i].split_factor == 1;
    if (mesh.axes[i].size == 1 || cuts_nothing_before) return false;
    parts *= mesh.axes[i].size;
  }
  return parts >= static_cast<std::int64_t>(cutting.chunks.size());
}

// Calls `take` with all placements that give every writer its box, until it returns false.
template <class Take>
void for_each_fitting_placement(const Mesh& mesh, const ShardedLayout& cutting, Take take) {
  if (cutting.shape.empty() || cutting.shape.size() > 4 || mesh.axes.size() > 4) return;
  Choices choices(mesh, cutting.shape.size());
  do {
    std::vector<Placement> placements = choices.placements();
    if (!can_explain(mesh, placements, cutting) ||
        !predicts_all_chunks(mesh, placements, cutting) ||
        !has_equal_box_count(mesh, placements, cutting))
      continue;
    if (take(std::move(placements))) return;
  } while (choices.next());
}

std::optional<std::vector<Placement>> find_placements(const Mesh& mesh,
                                                      const ShardedLayout& cutting) {
  std::optional<std::vector<Placement>> found;
  for_each_fitting_placement(mesh, cutting, [&](std::vector<Placement> placements) {
    // Prefers plain placements to strided ones.
    bool is_plain = as_plain_placements(placements) == placements;
    if (!found || is_plain) found = std::move(placements);
    return is_plain;
  });
  return found;
}

void judge(const Checkpoint& c, const std::vector<ShardedLayout>& cuttings,
           const Progress* progress, MeshGuess& guess) {
  for (const ShardedLayout& cutting : cancellable_range(cuttings, progress)) {
    const auto alike = static_cast<std::int64_t>(cutting.tensors.size());
    guess.looked_at += alike;
    auto placements = find_placements(guess.mesh, cutting);
    if (placements) {
      guess.explained += alike;
      guess.placements.push_back({cutting.tensors.front(), std::move(*placements)});
      continue;
    }
    guess.unexplained.insert(guess.unexplained.end(), cutting.tensors.begin(),
                             cutting.tensors.end());
    if (guess.against.size() < 8) {
      const auto& [writer, box] = cutting.chunks.back();
      guess.against.push_back(fmt::format("{} {}: no placements on it give rank {} {}",
                                          c.fqn(cutting.tensors.front()), to_text(cutting.shape),
                                          writer, to_text(box)));
    }
  }
  std::sort(guess.unexplained.begin(), guess.unexplained.end());
  if (guess.looked_at != 0)
    guess.confidence = static_cast<double>(guess.explained) / static_cast<double>(guess.looked_at);
}

// All ordered factorisations of `ranks` into axes larger than 1.
void factorise(std::int64_t ranks, std::vector<std::int64_t>& sizes,
               std::vector<std::vector<std::int64_t>>& out) {
  if (ranks == 1) {
    if (!sizes.empty()) out.push_back(sizes);
    return;
  }
  if (sizes.size() == kAxes) return;
  for (std::int64_t size = 2; size <= ranks; ++size) {
    if (ranks % size != 0) continue;
    sizes.push_back(size);
    factorise(ranks / size, sizes, out);
    sizes.pop_back();
  }
}

// True if the guess explains more tensors, or as many with fewer axes.
bool is_better_guess(const MeshGuess& a, const MeshGuess& b) {
  if (a.confidence != b.confidence) return a.confidence > b.confidence;
  return a.mesh.axes.size() < b.mesh.axes.size();
}

std::vector<MeshGuess> guess_from_chunks(const Checkpoint& c,
                                         const std::vector<ShardedLayout>& cuttings,
                                         std::int64_t ranks, const Progress* progress) {
  std::vector<std::vector<std::int64_t>> all;
  std::vector<std::int64_t> sizes;
  if (ranks > 1 && ranks <= kRanks) factorise(ranks, sizes, all);
  std::vector<MeshGuess> guesses;
  for (const auto& factors : all) {
    MeshGuess guess;
    guess.source = "chunk grids and writers";
    for (std::size_t i = 0; i < factors.size(); ++i)
      guess.mesh.axes.push_back({fmt::format("axis{}", i), factors[i]});
    judge(c, cuttings, progress, guess);
    // A mesh that neither user nor spec names is less certain: one with more axes would predict the
    // same.
    guess.confidence *= 0.95;
    if (guess.explained != 0) guesses.push_back(std::move(guess));
  }
  std::stable_sort(guesses.begin(), guesses.end(), is_better_guess);
  if (guesses.size() > 4) guesses.resize(4);
  if (guesses.size() > 1 && guesses[0].confidence == guesses[1].confidence &&
      guesses[0].mesh.axes.size() == guesses[1].mesh.axes.size()) {
    for (MeshGuess& guess : guesses) {
      guess.confidence *= 0.5;
      guess.against.push_back("another mesh explains as much");
    }
  }
  return guesses;
}

}  // namespace

std::int64_t ranks_that_wrote(const Checkpoint& checkpoint) {
  std::int64_t ranks = 0;
  for (const FileRow& file : checkpoint.files()) {
    if (file.rank && file.referenced) ranks = std::max<std::int64_t>(ranks, *file.rank + 1);
  }
  return ranks;
}

std::vector<MeshGuess> infer_meshes(const Checkpoint& checkpoint, std::span<const Mesh> named,
                                    const Mesh* given, const Progress* progress) {
  std::vector<ShardedLayout> cuttings = sharded_layouts_of(checkpoint, progress);
  std::vector<MeshGuess> guesses;
  std::int64_t ranks = ranks_that_wrote(checkpoint);
  if (given != nullptr) {
    MeshGuess guess;
    guess.mesh = *given;
    guess.source = "given";
    judge(checkpoint, cuttings, progress, guess);
    guess.confidence = 1;
    if (given->size() < ranks)
      guess.against.push_back(
          fmt::format("rank {} wrote, the mesh has {} ranks", ranks - 1, given->size()));
    guesses.push_back(std::move(guess));
  }
  if (cuttings.empty()) return guesses;
  std::vector<MeshGuess> by_spec;
  for (const Mesh& mesh : named) {
    if (mesh.size() < ranks || mesh.size() > kRanks) continue;
    MeshGuess guess;
    guess.mesh = mesh;
    guess.source = "spec";
    judge(checkpoint, cuttings, progress, guess);
    if (guess.explained != 0) by_spec.push_back(std::move(guess));
  }
  std::stable_sort(by_spec.begin(), by_spec.end(), is_better_guess);
  std::move(by_spec.begin(), by_spec.end(), std::back_inserter(guesses));
  auto rest = guess_from_chunks(checkpoint, cuttings, ranks, progress);
  std::move(rest.begin(), rest.end(), std::back_inserter(guesses));
  return guesses;
}

std::optional<std::vector<Placement>> infer_placements(const Checkpoint& checkpoint,
                                                       const Mesh& mesh, TensorId tensor) {
  auto cutting = sharded_layout_of(checkpoint, tensor);
  if (!cutting || mesh.size() > kRanks) return std::nullopt;
  return find_placements(mesh, *cutting);
}

InferredBox infer_box(const Checkpoint& checkpoint, const Mesh& mesh, TensorId tensor,
                      std::int64_t rank) {
  InferredBox out;
  auto cutting = sharded_layout_of(checkpoint, tensor);
  if (!cutting || mesh.size() > kRanks) return out;
  for_each_fitting_placement(mesh, *cutting, [&](const std::vector<Placement>& placements) {
    auto box = box_of_nested_splits(cutting->shape, mesh, placements, rank);
    if (!box) return false;
    out.is_ambiguous = out.box && *out.box != *box;
    if (!out.box) out.box = std::move(*box);
    return out.is_ambiguous;
  });
  return out;
}

}  // namespace shw
