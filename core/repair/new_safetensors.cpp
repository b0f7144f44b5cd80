// Repairs of Hugging Face checkpoints: which file holds each new tile, and what every file becomes.
//
// A file holds a tensor at most once. In a plain (consolidated) checkpoint a tensor is one piece in
// one file, so that all its tiles become one; in the sharded form a tile that is made anew goes to
// the file that held what it is made of, else to one of the same rank, else to any that has no
// shard of the tensor yet, else to a new file.
#include <algorithm>
#include <cstdio>
#include <set>

#include "core/formats/safetensors/safetensors.h"
#include "core/model/builder.h"
#include "core/repair/lost.h"
#include "core/repair/lower.h"
#include "core/repair/steps.h"

namespace shw {
namespace {

PlannedChunk joined(const Checkpoint& checkpoint, PlannedTensor& tensor) {
  PlannedChunk one;
  one.box = whole(tensor.shape);
  one.writer = tensor.chunks.empty() ? 0 : tensor.chunks.front().writer;
  auto at_of = [](const PlannedChunk& chunk, Extents at) {
    for (std::size_t d = 0; d < at.size(); ++d) at[d] += chunk.box.offsets[d];
    return at;
  };
  for (PlannedChunk& chunk : tensor.chunks) {
    if (chunk.item)
      one.pieces.push_back({*chunk.item, whole(checkpoint.sizes(*chunk.item)), chunk.box.offsets});
    for (Piece& piece : chunk.pieces) {
      piece.at = at_of(chunk, std::move(piece.at));
      one.pieces.push_back(std::move(piece));
    }
    for (SidePiece& side : chunk.side) {
      one.side.push_back(std::move(side));
      one.side.back().at = at_of(chunk, one.side.back().at);
    }
  }
  return one;
}

// Files of safetensors tensors, and who holds what after the repair.
struct Placing {
  const Checkpoint& checkpoint;
  const Plan& plan;
  std::vector<std::string> paths = {};    // those that hold tensors, in the order of the checkpoint
  std::set<std::string> everything = {};  // also what only lies there
  NewSafetensors made = {};

  const std::string& file_of(ChunkId chunk) const {
    return checkpoint.file(checkpoint.item(chunk)->file).path;
  }

  // A name like the others', with the first number that no file has.
  std::string new_path() const {
    const std::string& like = paths.front();
    std::string folder = like.substr(0, like.rfind('/') + 1);
    std::string name = like.substr(folder.size()), rest = "-model-00001-of-00001.safetensors";
    bool is_shard = name.size() > 11 && name.starts_with("shard-") && name[11] == '-';
    if (is_shard) rest = name.substr(11);
    for (int i = 1;; ++i) {
      char number[16];
      std::snprintf(number, sizeof number, "%05d", i);
      std::string path = folder + "shard-" + number + rest;
      if (!everything.contains(path) && !made.added.contains(path)) return path;
    }
  }

  std::string place_for(const PlannedTensor& tensor, const PlannedChunk& chunk,
                        const std::set<std::string>& taken) {
    for (const Piece& piece : chunk.pieces) {
      if (!taken.contains(file_of(piece.chunk))) return file_of(piece.chunk);
    }
    std::string any;
    std::set<std::string> holders;
    for (ChunkId old : checkpoint.chunks(tensor.tensor)) holders.insert(file_of(old));
    for (const std::string& path : paths) {
      if (taken.contains(path)) continue;
      if (checkpoint.format().traits.writer_of_file(path) == chunk.writer) return path;
      if (any.empty() || (holders.contains(path) && !holders.contains(any))) any = path;
    }
    for (const auto& [path, like] : made.added) {
      if (any.empty() && !taken.contains(path)) any = path;
    }
    if (!any.empty()) return any;
    std::string path = new_path();
    made.added.emplace(path, paths.front());
    return path;
  }

  void place_tensor(std::size_t t) {
    const PlannedTensor& tensor = plan.tensors[t];
    std::string fqn(checkpoint.fqn(tensor.tensor));
    bool sharded = !checkpoint.format().traits.one_piece;
    std::set<std::string> taken;
    for (const PlannedChunk& chunk : tensor.chunks) {
      if (!chunk.item) continue;
      const std::string& path = file_of(*chunk.item);
      taken.insert(path);
      if (sharded) made.changes[path].saved_offsets[fqn] = chunk.box.offsets;
    }
    for (std::size_t c = 0; c < tensor.chunks.size(); ++c) {
      const PlannedChunk& chunk = tensor.chunks[c];
      if (chunk.item) continue;
      std::string path = place_for(tensor, chunk, taken);
      taken.insert(path);
      made.changes[path].written[fqn] = described(tensor, chunk);
      made.places.push_back({{t, c}, path, 0});
      if (sharded) made.changes[path].saved_offsets[fqn] = chunk.box.offsets;
      count(chunk.box.sizes, tensor.tensor, 1);
    }
    std::set<ChunkId> kept;
    for (const PlannedChunk& chunk : tensor.chunks) {
      if (chunk.item) kept.insert(*chunk.item);
    }
    for (ChunkId old : checkpoint.chunks(tensor.tensor)) {
      if (kept.contains(old)) continue;
      count(copy_of(checkpoint.sizes(old)), tensor.tensor, -1);
      if (!taken.contains(file_of(old))) made.changes[file_of(old)].dropped.insert(fqn);
    }
  }

  // Every file that changes says anew what is filled in the tensors that it holds.
  void note_filled(const FilledRecord& filled) {
    if (filled.tensors.empty()) return;
    std::map<std::string, std::set<std::string>> held;
    for (std::uint32_t i = 0; i < checkpoint.chunk_count(); ++i)
      held[file_of(ChunkId{i})].emplace(checkpoint.fqn(checkpoint.tensor_of(ChunkId{i})));
    for (auto& [path, change] : made.changes) {
      FilledRecord own;
      for (const FilledTensor& tensor : filled.tensors) {
        bool holds = (held[path].contains(tensor.fqn) && !change.dropped.contains(tensor.fqn)) ||
                     change.written.contains(tensor.fqn);
        if (holds) own.tensors.push_back(tensor);
      }
      change.filled = filled_attribute(own);
    }
  }

  void count(const Extents& sizes, TensorId tensor, std::int64_t sign) {
    std::int64_t elements = sign * volume(sizes).value_or(0);
    made.more_elements += elements;
    made.more_bytes += elements * static_cast<std::int64_t>(size_of(checkpoint.dtype(tensor)));
  }

  SafetensorsTensor described(const PlannedTensor& tensor, const PlannedChunk& chunk) const {
    const DtypeInfo& dtype = info(checkpoint.dtype(tensor.tensor));
    SafetensorsTensor one;
    one.dtype_text = dtype.safetensors.empty() ? "F4" : dtype.safetensors;
    one.shape = chunk.box.sizes;
    one.length = static_cast<std::uint64_t>(volume(chunk.box.sizes).value_or(0)) * dtype.size;
    return one;
  }
};

}  // namespace

Plan in_form_of(const Checkpoint& checkpoint, Plan plan) {
  if (checkpoint.format().rewrite != Rewrite::kFiles) return plan;
  bool plain = checkpoint.format().traits.one_piece;
  for (PlannedTensor& tensor : plan.tensors) {
    for (PlannedChunk& chunk : tensor.chunks) {
      // A file knows its bytes by the tensor's name: those of another tensor have to be copied.
      if (!chunk.item || checkpoint.tensor_of(*chunk.item) == tensor.tensor) continue;
      chunk.pieces.push_back(
          {*chunk.item, whole(chunk.box.sizes), Extents(chunk.box.sizes.size(), 0)});
      chunk.item.reset();
    }
    bool one = tensor.chunks.size() == 1 && tensor.chunks.front().box == whole(tensor.shape);
    if (!plain || one) continue;
    PlannedChunk chunk = joined(checkpoint, tensor);
    tensor.chunks.clear();
    tensor.chunks.push_back(std::move(chunk));
  }
  return plan;
}

Result<NewSafetensors> new_safetensors(const Checkpoint& checkpoint, const Plan& plan) {
  Placing placing{checkpoint, plan};
  for (const FileRow& file : checkpoint.files()) {
    placing.everything.insert(file.path);
    if (file.referenced && file.path.ends_with(".safetensors")) placing.paths.push_back(file.path);
  }
  if (placing.paths.empty())
    return fail(ErrorKind::kUnsupported, "holds no file that could be written anew",
                {plan.checkpoint});
  for (std::size_t t = 0; t < plan.tensors.size(); ++t) placing.place_tensor(t);
  placing.note_filled(filled_after(checkpoint, plan));
  std::erase_if(placing.made.changes, [](const auto& change) { return change.second.empty(); });
  return std::move(placing.made);
}

}  // namespace shw
