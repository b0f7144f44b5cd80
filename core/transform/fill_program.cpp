#include "core/transform/fill_program.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

#include "core/base/parallel.h"
#include "core/exec/align_outputs.h"
#include "core/transform/lower_parts.h"
#include "core/transform/part_index.h"

namespace shw {
namespace {

// Number of tensors that one thread lowers together, tile by tile. The program orders rows by file,
// so lowering tensor by tensor would miss the cache and the TLB at each row. Few, because a tile
// takes 600 bytes until it is written.
constexpr std::size_t kTensorsAtOnce = 8, kTilesAtOnce = 16384;

// Needed chunks in the order of file name and offset, which is also their order in the program.
std::vector<ChunkId> needed_chunks_in_file_order(const Checkpoint& checkpoint,
                                                 const std::vector<std::uint8_t>& needed) {
  std::vector<std::uint32_t> by_name(checkpoint.file_count()), rank(checkpoint.file_count());
  std::iota(by_name.begin(), by_name.end(), 0u);
  std::sort(by_name.begin(), by_name.end(), [&](std::uint32_t a, std::uint32_t b) {
    return checkpoint.file(FileId{a}).path < checkpoint.file(FileId{b}).path;
  });
  for (std::uint32_t i = 0; i < by_name.size(); ++i) rank[by_name[i]] = i;
  // A chunk without an item comes last and is refused when it is read.
  auto rank_of = [&](ChunkId chunk) {
    auto item = checkpoint.item(chunk);
    return item ? rank[index_of(item->file)] : checkpoint.file_count();
  };
  std::vector<std::uint32_t> next(checkpoint.file_count() + 2, 0);
  for (std::uint32_t i = 0; i < needed.size(); ++i) {
    if (needed[i] != 0) ++next[rank_of(ChunkId{i}) + 1];
  }
  std::partial_sum(next.begin(), next.end(), next.begin());
  const std::vector<std::uint32_t> begin = next;
  std::vector<ChunkId> chunks(begin.back());
  for (std::uint32_t i = 0; i < needed.size(); ++i) {
    if (needed[i] != 0) chunks[next[rank_of(ChunkId{i})]++] = ChunkId{i};
  }
  auto before = [&](ChunkId a, ChunkId b) {
    return checkpoint.item(a)->offset < checkpoint.item(b)->offset;
  };
  static_cast<void>(parallel_for(checkpoint.file_count(), [&](std::size_t file) -> Status {
    auto first = chunks.begin() + begin[file], last = chunks.begin() + begin[file + 1];
    if (!std::is_sorted(first, last, before)) std::stable_sort(first, last, before);
    return {};
  }));
  return chunks;
}

class Filling {
 public:
  Filling(const TargetState& all, const ResultFormat& form, LoweredTarget& lowered,
          Progress* progress)
      : all_(all), form_(form), lowered_(lowered), progress_(progress), parts_(all) {
    group_written_by_tensor();
  }

  Status read_headers(const NeededParts& needed) {
    for (std::uint32_t input = 0; input < needed.chunks.size(); ++input)
      SHW_CHECK(parts_.prepare(
          input, needed_chunks_in_file_order(*all_.inputs[input], needed.chunks[input]),
          progress_));
    for (const FromFile& file : needed.files) parts_.add_file(file);
    return {};
  }

  Status fill(const NeededParts& needed) {
    ProgramFrame frame(names());
    parts_.set_sources(frame);
    if (progress_ != nullptr) progress_->begin(Phase::kPlanning, made().size(), false);
    SHW_TRY(const std::vector<std::uint32_t> jobs, jobs_of_tiles(needed));
    set_outputs(frame, jobs);
    auto fill_tile = [&](std::size_t i, const PartIndex& tensor, Scratch& scratch) -> Status {
      const Box box = box_of(made()[i]);
      const std::string& fqn = tensor.tensor().fqn;
      const std::span<const Part> parts = parts_of(tensor, box, scratch);
      SHW_CHECK(parts_.jobs_of(fqn, parts, box, scratch.jobs));
      const OutputId output = lowered_.made[i];
      frame.fill(output, tensor.tensor().shape, box, scratch.jobs);
      if (progress_ != nullptr) progress_->add(1);
      // Checks the rows in the program itself, so no second pass is needed.
      return parts_.check(frame.program(), frame.jobs_of(output), fqn, parts, box);
    };
    SHW_CHECK(for_each_output(groups_, fill_tile));
    lowered_.program = frame.take();
    return {};
  }

 private:
  // Written tiles of one tensor: [first, last) of laid_out.made.
  struct WrittenGroup {
    std::uint32_t tensor = 0;
    std::size_t first = 0, last = 0;
    std::size_t size() const { return last - first; }
  };

  const std::vector<WrittenTile>& made() const { return lowered_.laid_out.made; }
  const OutputTensor& tensor_of(const WrittenTile& tile) const {
    return lowered_.outputs.tensors[tile.tensor];
  }
  Box box_of(const WrittenTile& tile) const { return tensor_of(tile).tiles.box(tile.tile); }

  void group_written_by_tensor() {
    for (std::size_t i = 0; i < made().size(); ++i) {
      if (groups_.empty() || groups_.back().tensor != made()[i].tensor)
        groups_.push_back({made()[i].tensor, i, i});
      groups_.back().last = i + 1;
    }
  }

  // Buffers of one thread.
  struct Scratch {
    std::vector<Part> parts = {};
    std::vector<NewJob> jobs = {};
  };

  // Parts of a tile; stored in `scratch` unless the tile is a whole part of the tensor.
  static std::span<const Part> parts_of(const PartIndex& tensor, const Box& tile,
                                        Scratch& scratch) {
    const Part* whole_tile = tensor.parts_of_tile(tile, scratch.parts);
    return whole_tile == nullptr ? std::span<const Part>(scratch.parts) : std::span(whole_tile, 1);
  }

  // Groups that one thread lowers together.
  static std::vector<std::span<const WrittenGroup>> blocks_of(
      std::span<const WrittenGroup> groups) {
    std::vector<std::span<const WrittenGroup>> blocks;
    while (!groups.empty()) {
      std::size_t count = 0, tiles = 0;
      while (count < std::min(kTensorsAtOnce, groups.size()) &&
             (count == 0 || tiles + groups[count].size() <= kTilesAtOnce))
        tiles += groups[count++].size();
      blocks.push_back(groups.first(count));
      groups = groups.subspan(count);
    }
    return blocks;
  }

  // Calls visit(index in laid_out.made, its tensor, scratch) on all threads. Returns the error of
  // the first group that fails.
  template <class Visit>
  Status for_each_output(std::span<const WrittenGroup> groups, Visit visit) const {
    const std::vector<std::span<const WrittenGroup>> blocks = blocks_of(groups);
    return parallel_for(blocks.size(), [&](std::size_t b) -> Status {
      return for_each_output_of_block(blocks[b], visit);
    });
  }
  template <class Visit>
  Status for_each_output_of_block(std::span<const WrittenGroup> block, Visit visit) const {
    std::vector<std::unique_ptr<const IndexedTensor>> tensors;
    std::size_t most = 0;
    for (const WrittenGroup& group : block) {
      SHW_TRY(TargetTensor tensor, tensor_of_group(group));
      tensors.push_back(std::make_unique<const IndexedTensor>(std::move(tensor)));
      most = std::max(most, group.size());
    }
    Scratch scratch;
    Status first;
    for (std::size_t tile = 0; tile < most; ++tile) {
      for (std::size_t g = 0; g < tensors.size(); ++g) {
        if (tile >= block[g].size()) continue;
        auto done = visit(block[g].first + tile, tensors[g]->index, scratch);
        if (done) continue;
        first = std::move(done);
        tensors.resize(g);  // earlier groups must still run: one may have the first error
      }
    }
    return first;
  }

  Result<TargetTensor> tensor_of_group(const WrittenGroup& group) const {
    if (is_cancelled(progress_)) return cancelled_error();
    return target_for(all_, all_.tensors[group.tensor], form_);
  }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    parts_.add_names(names);
    std::vector<bool> is_made(lowered_.laid_out.files.size(), false);
    for (const WrittenTile& tile : made()) is_made[tile.file] = true;
    for (std::size_t f = 0; f < is_made.size(); ++f) {
      if (is_made[f]) names.push_back(lowered_.laid_out.files[f].path);
    }
    for (const WrittenGroup& group : groups_)
      names.push_back(lowered_.outputs.tensors[group.tensor].fqn);
    return names;
  }

  // Number of jobs for each written tile.
  Result<std::vector<std::uint32_t>> jobs_of_tiles(const NeededParts& needed) const {
    std::vector<std::uint32_t> counts(made().size(), 1);
    std::vector<WrittenGroup> unsure;
    std::copy_if(groups_.begin(), groups_.end(), std::back_inserter(unsure),
                 [&](const WrittenGroup& group) { return needed.is_one_job[group.tensor] == 0; });
    auto count = [&](std::size_t i, const PartIndex& tensor, Scratch& scratch) -> Status {
      const Box box = box_of(made()[i]);
      SHW_CHECK(
          parts_.jobs_of(tensor.tensor().fqn, parts_of(tensor, box, scratch), box, scratch.jobs));
      counts[i] = static_cast<std::uint32_t>(scratch.jobs.size());
      return {};
    };
    SHW_CHECK(for_each_output(unsure, count));
    return counts;
  }

  void set_outputs(ProgramFrame& frame, const std::vector<std::uint32_t>& jobs) {
    std::vector<std::uint32_t> files(lowered_.laid_out.files.size(), 0);
    std::vector<std::uint32_t> tensors(lowered_.outputs.tensors.size(), 0);
    for (const WrittenTile& tile : made()) files[tile.file] = 1;
    for (std::size_t f = 0; f < files.size(); ++f) {
      if (files[f] != 0) files[f] = frame.name(lowered_.laid_out.files[f].path);
    }
    for (const WrittenGroup& group : groups_)
      tensors[group.tensor] = frame.name(lowered_.outputs.tensors[group.tensor].fqn);
    lowered_.made = frame.set_outputs(made().size(), [&](std::size_t i) {
      const WrittenTile& tile = made()[i];
      const OutputTensor& tensor = tensor_of(tile);
      return ProgramFrame::Output{files[tile.file], tensors[tile.tensor],
                                  tile.offset,      tile.length,
                                  tensor.dtype,     static_cast<std::uint32_t>(tensor.shape.size()),
                                  jobs[i]};
    });
  }

  const TargetState& all_;
  const ResultFormat& form_;
  LoweredTarget& lowered_;
  Progress* progress_;
  PartLowering parts_;
  std::vector<WrittenGroup> groups_;
};

}  // namespace

Status fill_program(const TargetState& all, const ResultFormat& form, const NeededParts& needed,
                    LoweredTarget& lowered, Progress* progress) {
  Filling filling(all, form, lowered, progress);
  SHW_CHECK(filling.read_headers(needed));
  SHW_CHECK(filling.fill(needed));
  SHW_CHECK(align_outputs(*form.format->writer, lowered.made, lowered.laid_out, lowered.program));
  return prove(lowered.program);
}

}  // namespace shw
