#include "core/facts/states/per_rank_masters.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "core/facts/layout/spec_layout.h"
#include "core/facts/states/optimizer_states.h"
#include "core/mesh/torch_offset_bugs.h"
#include "core/model/state_path.h"
#include "core/tensor/cast.h"

namespace shw {
namespace {

// Elements compared per chunk: enough to distinguish two tensors, few enough for thousands of
// experts.
constexpr std::int64_t kCompared = 4096;

// The rank in a file name: 3 for "optimizer_rank_3.pt".
std::optional<std::int64_t> rank_of_file(std::string_view path) {
  std::size_t dot = path.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  std::string_view extension = path.substr(dot);
  if (extension != ".pt" && extension != ".pth" && extension != ".bin") return std::nullopt;
  std::string_view stem = path.substr(0, dot);
  std::size_t digits = stem.size();
  while (digits > 0 && stem[digits - 1] >= '0' && stem[digits - 1] <= '9') --digits;
  if (digits == stem.size() || stem.find("rank") == std::string_view::npos) return std::nullopt;
  std::int64_t rank = 0;
  auto [end, code] = std::from_chars(stem.data() + digits, stem.data() + stem.size(), rank);
  if (code != std::errc{} || end != stem.data() + stem.size()) return std::nullopt;
  return rank;
}

bool is_master(const std::vector<PathPart>& path) {
  return std::any_of(path.begin(), path.end(), [](const PathPart& part) {
    const auto* name = std::get_if<std::string>(&part);
    return name != nullptr && role_of_kind(*name) == StateRole::kMaster;
  });
}

// True if row-major and little-endian, so that the elements are one byte range.
bool is_one_range(const TorchFileTensor& tensor) {
  return !tensor.big_endian && same(tensor.strides, row_major_strides(tensor.sizes));
}

ExternalPiece external_piece_of(const std::string& file, const TorchFileTensor& tensor,
                                Extents at) {
  std::uint64_t size = size_of(tensor.dtype);
  ExternalPiece piece;
  piece.file = file;
  piece.offset = tensor.payload_offset + static_cast<std::uint64_t>(tensor.storage_offset) * size;
  piece.length = static_cast<std::uint64_t>(volume(tensor.sizes).value_or(0)) * size;
  piece.dtype = tensor.dtype;
  piece.sizes = tensor.sizes;
  piece.at = std::move(at);
  return piece;
}

struct Part {
  std::int64_t rank = 0;  // writer of the file
  Box box;
};

// The ranks whose files form the tensor: one per distinct box.
std::optional<std::vector<Part>> master_parts(const CheckInput& input,
                                              const PerRankMasters& masters,
                                              const SpecEntry& entry) {
  std::vector<Part> parts;
  std::set<Extents> seen;
  std::int64_t covered = 0;
  for (const auto& [writer, file] : masters.ranks) {
    auto rank = rank_in_mesh(input, *entry.mesh, static_cast<std::uint32_t>(writer));
    if (!rank) return std::nullopt;
    auto box = box_of_nested_splits(entry.shape, *entry.mesh, entry.placements, *rank);
    if (!box) return std::nullopt;
    if (is_empty(*box) || !seen.insert(box->offsets).second) continue;
    covered += volume(box->sizes).value_or(0);
    parts.push_back({writer, std::move(*box)});
  }
  // Boxes of one layout are disjoint, so their volumes prove coverage.
  if (covered != volume(entry.shape)) return std::nullopt;
  return parts;
}

// Number of leading elements of a chunk's item that equal the writer's master after a cast; nullopt
// if one differs or is unreadable.
std::optional<std::int64_t> equal_elements(const CheckInput& input,
                                           const RetainedChunk& retained_chunk, Dtype dtype,
                                           const PerRankMasters::RankFile& file,
                                           const TorchFileTensor& master) {
  const Checkpoint& c = input.checkpoint;
  const Result<ItemHeader>& header = input.headers[index_of(retained_chunk.chunk)];
  auto item = c.item(retained_chunk.chunk);
  if (!header || !item || header->dtype != dtype || header->compressed || header->big_endian ||
      header->conjugate || header->negative ||
      !same(header->strides, row_major_strides(header->sizes)) || !is_one_range(master))
    return std::nullopt;
  std::int64_t count = std::min(kCompared, volume(header->sizes).value_or(0));
  auto elements = static_cast<std::uint64_t>(count);
  auto source = c.directory()->open(c.file(item->file).path);
  if (!source) return std::nullopt;
  std::uint64_t size = size_of(dtype);
  auto saved = read_bytes(
      **source, header->payload_offset + static_cast<std::uint64_t>(header->storage_offset) * size,
      elements * size);
  ExternalPiece piece = external_piece_of(file.path, master, {});
  auto raw = read_bytes(*file.source, piece.offset, elements * size_of(master.dtype));
  if (!saved || !raw) return std::nullopt;
  auto cast = cast_elements(master.dtype, *raw, dtype);
  if (!cast || *cast != *saved) return std::nullopt;
  return count;
}

bool fits_masters(const PerRankMasters& masters, const std::string& place,
                  const std::vector<Part>& parts) {
  return std::all_of(parts.begin(), parts.end(), [&](const Part& part) {
    const auto& of_rank = masters.ranks.at(part.rank).masters;
    auto found = of_rank.find(place);
    return found != of_rank.end() && found->second.sizes == part.box.sizes &&
           is_one_range(found->second);
  });
}

}  // namespace

std::map<std::int64_t, RankTensors> read_rank_files(const Checkpoint& checkpoint) {
  std::map<std::int64_t, RankTensors> out;
  if (checkpoint.directory() == nullptr) return out;
  for (const FileRow& file : checkpoint.files()) {
    if (file.referenced || !file.safe || file.kind != EntryKind::kFile) continue;
    auto rank = rank_of_file(file.path);
    if (!rank || out.contains(*rank)) continue;
    auto source = checkpoint.directory()->open(file.path);
    auto tensors = source ? read_torch_file_tensors(*source) : Result<SideFile>(SideFile{});
    if (!source || !tensors) continue;
    out.emplace(*rank, RankTensors{file.path, *source, std::move(tensors->tensors)});
  }
  return out;
}

std::optional<PerRankMasters> read_per_rank_masters(const Checkpoint& checkpoint) {
  PerRankMasters out;
  for (auto& [rank, file] : read_rank_files(checkpoint)) {
    PerRankMasters::RankFile found{file.path, file.source, {}};
    for (TorchFileTensor& tensor : file.tensors) {
      bool of_this_rank =
          !tensor.sharding || !tensor.sharding->rank || *tensor.sharding->rank == rank;
      if (is_master(tensor.path) && of_this_rank)
        found.masters.emplace(dotted_path(tensor.path), std::move(tensor));
    }
    if (!found.masters.empty()) out.ranks.emplace(rank, std::move(found));
  }
  if (out.ranks.empty()) return std::nullopt;
  return out;
}

std::optional<RankFileRestore> restore_from_rank_files(const CheckInput& input,
                                                       const PerRankMasters& masters,
                                                       const DroppedAxis& dropped) {
  const Checkpoint& c = input.checkpoint;
  if (!dropped.placed || dropped.retained_chunks.empty() || input.headers.empty())
    return std::nullopt;
  auto parts = master_parts(input, masters, *dropped.entry);
  if (!parts) return std::nullopt;
  std::optional<RankFileRestore> found;
  for (const auto& [place, first] : masters.ranks.begin()->second.masters) {
    if (!fits_masters(masters, place, *parts)) continue;
    RankFileRestore restore;
    restore.master = place;
    bool equal = true;
    for (const RetainedChunk& retained_chunk : dropped.retained_chunks) {
      auto writer = c.writer(retained_chunk.chunk);
      auto file = writer ? masters.ranks.find(*writer) : masters.ranks.end();
      equal = file != masters.ranks.end() && file->second.masters.contains(place);
      if (!equal) break;
      auto count = equal_elements(input, retained_chunk, c.dtype(dropped.tensor), file->second,
                                  file->second.masters.at(place));
      equal = count.has_value();
      if (!equal) break;
      restore.compared += *count;
    }
    if (!equal) continue;
    // Ambiguous, because two masters have equal values.
    if (found) return std::nullopt;
    for (const Part& part : *parts) {
      const PerRankMasters::RankFile& file = masters.ranks.at(part.rank);
      restore.pieces.push_back(
          external_piece_of(file.path, file.masters.at(place), part.box.offsets));
    }
    found = std::move(restore);
  }
  return found;
}

std::optional<std::string> contradicted_by_masters(const CheckInput& input,
                                                   const PerRankMasters& masters,
                                                   const DroppedAxis& dropped,
                                                   std::int64_t& comparisons) {
  constexpr std::int64_t kSure = 16;  // equal elements that exclude chance
  const Checkpoint& c = input.checkpoint;
  if (!dropped.placed || input.headers.empty()) return std::nullopt;
  Dtype dtype = c.dtype(dropped.tensor);
  for (const RetainedChunk& retained_chunk : dropped.retained_chunks) {
    auto writer = c.writer(retained_chunk.chunk);
    if (!writer) continue;
    std::vector<std::string> others;
    bool own = false;
    for (const auto& [rank, file] : masters.ranks) {
      for (const auto& [place, master] : file.masters) {
        if (!same(master.sizes, c.sizes(retained_chunk.chunk))) continue;
        if (--comparisons < 0) return std::nullopt;
        auto count = equal_elements(input, retained_chunk, dtype, file, master);
        if (!count || *count < kSure) continue;
        own = own || rank == static_cast<std::int64_t>(*writer);
        if (rank != static_cast<std::int64_t>(*writer))
          others.push_back(place + " in " + file.path);
      }
    }
    if (own || others.size() != 1) continue;
    return fmt::format(
        "rank {} wrote {} at {}, but its values are those of {}: file names do not show where the "
        "kept shards belong",
        *writer, c.fqn(dropped.tensor), to_text(c.offsets(retained_chunk.chunk)), others.front());
  }
  return std::nullopt;
}

}  // namespace shw
