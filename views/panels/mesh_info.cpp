// The mesh of ranks: from the spec if its mesh has as many ranks as wrote, else from the tensor
// with the most writers.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "views/digest.h"
#include "views/text.h"

namespace shw {
namespace {

constexpr std::uint32_t kMaxInferred = 400'000;  // chunks; more would delay the first frame
constexpr std::uint32_t kMaxColumns = 64;        // columns; narrower cells are invisible

// The mesh of a tensor with a finding, else the most frequent mesh of the spec.
std::vector<MeshAxis> from_spec(const Snapshot& snapshot, std::uint32_t ranks) {
  if (snapshot.spec == nullptr) return {};
  auto fits = [&](const SpecEntry* entry) {
    return entry != nullptr && entry->mesh && entry->mesh->size() == ranks;
  };
  if (snapshot.report != nullptr) {
    for (const Finding& finding : snapshot.report->findings) {
      for (const std::string& subject : finding.subjects) {
        if (const SpecEntry* entry = snapshot.spec->find(subject); fits(entry))
          return axes_longer_than_one(*entry->mesh);
      }
    }
  }
  std::vector<MeshAxis> best;
  for (const auto& [fqn, entry] : snapshot.spec->entries) {
    if (!fits(&entry)) continue;
    auto axes = axes_longer_than_one(*entry.mesh);
    if (axes.size() > best.size()) best = std::move(axes);
  }
  return best;
}

// Infers axes from a tensor whose ranks wrote one tile each: a step along a dim changes the rank by
// the axis' stride.
std::vector<MeshAxis> axes_from_tensor_writers(const Checkpoint& checkpoint, TensorId tensor,
                                               std::uint32_t ranks) {
  auto chunks = checkpoint.chunks(tensor);
  std::size_t ndim = checkpoint.shape(tensor).size();
  if (chunks.size() != ranks) return {};
  std::map<std::int64_t, MeshAxis> by_stride;  // by rank stride
  for (std::size_t d = 0; d < ndim; ++d) {
    std::map<std::int64_t, std::uint32_t>
        writer_at;  // rank by offset along d, through the first chunk
    for (ChunkId chunk : chunks) {
      auto at = checkpoint.offsets(chunk);
      auto writer = checkpoint.writer(chunk);
      if (at.size() != ndim || !writer) return {};
      bool on_line = true;
      for (std::size_t other = 0; other < ndim; ++other)
        on_line = on_line && (other == d || at[other] == 0);
      if (on_line) writer_at.emplace(at[d], *writer);
    }
    if (writer_at.size() < 2) continue;
    auto first = writer_at.begin(), second = std::next(first);
    std::int64_t stride = std::int64_t{second->second} - std::int64_t{first->second};
    std::int64_t expected = first->second;
    for (auto& [offset, writer] : writer_at) {
      if (writer != expected) return {};
      expected += stride;
    }
    MeshAxis axis{fmt::format("dim {}", d), static_cast<std::int64_t>(writer_at.size())};
    if (stride <= 0 || !by_stride.emplace(stride, axis).second) return {};
  }
  std::int64_t product = 1;
  std::vector<MeshAxis> axes;
  for (auto& [stride, axis] : by_stride) {
    if (stride != product) return {};
    product *= axis.size;
    axes.insert(axes.begin(), axis);
  }
  return product == ranks ? axes : std::vector<MeshAxis>{};
}

// Prefers tensors split along several dims; examines at most a thousand.
std::vector<MeshAxis> axes_from_best_tensor(const Checkpoint& checkpoint, std::uint32_t ranks) {
  std::vector<MeshAxis> best;
  int candidates = 0;
  for (std::uint32_t t = 0; t < checkpoint.tensor_count() && candidates < 200; ++t) {
    if (checkpoint.chunks(TensorId{t}).size() != ranks) continue;
    ++candidates;
    auto axes = axes_from_tensor_writers(checkpoint, TensorId{t}, ranks);
    if (axes.size() > best.size()) best = std::move(axes);
  }
  return best;
}

std::vector<RankShare> shares_of(const Checkpoint& checkpoint, std::uint32_t ranks) {
  std::vector<RankShare> shares(ranks);
  const bool has_files = checkpoint.directory() != nullptr;
  std::vector<std::uint32_t> last(ranks, 0);  // index + 1 of the last tensor counted for each rank
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t) {
    auto width = static_cast<std::uint64_t>(size_of(checkpoint.dtype(TensorId{t})));
    for (ChunkId chunk : checkpoint.chunks(TensorId{t})) {
      auto writer = checkpoint.writer(chunk);
      if (!writer || *writer >= ranks) continue;
      RankShare& share = shares[*writer];
      if (last[*writer] != t + 1) ++share.tensors;
      last[*writer] = t + 1;
      const auto bytes =
          static_cast<std::uint64_t>(volume(checkpoint.sizes(chunk)).value_or(0)) * width;
      ++share.tiles;
      share.bytes += bytes;
      auto item = checkpoint.item(chunk);
      if (!has_files || !item || is_reachable(checkpoint, *item)) continue;
      ++share.unreadable_tiles;
      share.unreadable_bytes += bytes;
    }
  }
  return shares;
}

std::string axis_text(const MeshAxis& axis, const char* where) {
  if (axis.name.starts_with("dim "))  // unnamed axis: only its dim is known
    return fmt::format("{} parts of {}{}", axis.size, axis.name, where);
  return fmt::format("{} {}{}", axis.name, axis.size, where);
}

}  // namespace

std::shared_ptr<const MeshInfo> make_mesh(const Snapshot& snapshot) {
  auto info = std::make_shared<MeshInfo>();
  if (snapshot.checkpoint == nullptr) return info;
  info->ranks = snapshot.checkpoint->rank_count();
  info->looked = snapshot.checkpoint->chunk_count() <= kMaxInferred;
  if (info->looked)
    info->guesses = infer_meshes(*snapshot.checkpoint, named_meshes(snapshot.spec.get()),
                                 snapshot.mesh ? &*snapshot.mesh : nullptr);
  std::uint32_t highest = 0;
  for (const FileRow& file : snapshot.checkpoint->files()) {
    if (file.rank && *file.rank < 10'000'000) highest = std::max(highest, *file.rank);
  }
  std::uint32_t ranks = std::max(info->ranks, 1u);
  if (info->ranks > 0) info->shares = shares_of(*snapshot.checkpoint, std::max(ranks, highest + 1));
  const char* source = "given by you";
  if (snapshot.mesh && snapshot.mesh->size() == std::int64_t{ranks})
    info->axes = axes_longer_than_one(*snapshot.mesh);
  if (info->axes.empty()) {
    source = "named by the spec";
    info->axes = from_spec(snapshot, ranks);
  }
  if (info->axes.empty()) {
    info->axes = axes_from_best_tensor(*snapshot.checkpoint, ranks);
    source = "read from writers";
  }
  if (info->axes.size() >= 2 && info->axes.back().size <= 2 * kMaxColumns) {
    info->grid.columns = static_cast<std::uint32_t>(info->axes.back().size);
    info->grid.rows = std::max(1u, ranks / info->grid.columns);
    for (std::size_t a = 0; a + 1 < info->axes.size(); ++a)
      info->text += axis_text(info->axes[a], a + 2 == info->axes.size() ? " (rows) × " : " × ");
    info->text += axis_text(info->axes.back(), " (columns) · ") + source;
    return info;
  }
  // Ranks that wrote nothing keep their position.
  std::uint32_t places = std::max(ranks, highest + 1);
  info->grid.columns = std::min(places, places > kMaxColumns ? 32u : kMaxColumns);
  info->grid.rows = (places + info->grid.columns - 1) / info->grid.columns;
  if (info->axes.size() == 1)
    info->text = axis_text(info->axes[0], " · ") + source;
  else if (info->ranks == 0)
    info->text = "The names of the files do not say who wrote them.";
  else
    info->text = info->ranks == 1 ? "one writer" : "in order of rank; the mesh is not known";
  return info;
}

}  // namespace shw
