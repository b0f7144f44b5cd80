#include "core/transform/lower.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "core/base/parallel.h"
#include "core/base/words.h"
#include "core/facts/filled.h"
#include "core/formats/common/filled_attribute.h"
#include "core/formats/plain_value.h"
#include "core/transform/lower_parts.h"
#include "core/transform/packed_tensor.h"
#include "core/transform/part_index.h"
#include "core/transform/tilings.h"

namespace shw {
namespace {

// Holds of what goes out that every element has exactly one origin.
Status check_is_whole(const ArrangedTensor& tensor) {
  SHW_TRY(std::vector<Box> holes, holes_in(tensor));
  if (holes.empty()) return {};
  std::int64_t missing = 0;
  for (const Box& box : holes) missing += volume(box.sizes).value_or(0);
  return cannot_arrange(
      tensor.fqn,
      fmt::format("{} of its {} elements are saved nowhere, the first at {}",
                  human_count(static_cast<std::uint64_t>(missing)),
                  human_count(static_cast<std::uint64_t>(volume(tensor.shape).value_or(0))),
                  to_text(holes.front())),
      "repair it first, or add a step that fills it");
}

// The chunk that a tile is, whole and as it lies there; nothing where its elements are made.
std::optional<ChunkId> kept_chunk(const Arrangement& all, const ArrangedTensor& tensor,
                                  const Part& part, const Box& tile) {
  const auto* from = std::get_if<FromChunk>(&part.from);
  bool whole_tile = part.box == tile && part.casts.empty() && !part.scaling;
  if (from == nullptr || from->input != 0 || !whole_tile) return std::nullopt;
  const Checkpoint& source = all.source();
  bool same_box =
      same(source.sizes(from->chunk), tile.sizes) && part.order == same_order(tile.sizes.size()) &&
      std::all_of(part.first.begin(), part.first.end(), [](std::int64_t at) { return at == 0; });
  // An item says of itself what it is: a view into a longer storage says more than the tile.
  bool own_item = same_box && source.item(from->chunk) && !source.view(from->chunk) &&
                  source.dtype(source.tensor_of(from->chunk)) == tensor.dtype;
  return own_item ? std::optional(from->chunk) : std::nullopt;
}

std::vector<ChunkId> chunks_in(const std::vector<bool>& needed) {
  std::vector<ChunkId> chunks;
  for (std::uint32_t i = 0; i < needed.size(); ++i) {
    if (needed[i]) chunks.push_back(ChunkId{i});
  }
  return chunks;
}

// Tensors whose parts are worked out together, by all threads: few enough to hold all of them, and
// of many tiles fewer (a KB each).
constexpr std::size_t kTensorsAtOnce = 64, kTilesAtOnce = 16384;

class Lowering {
 public:
  Lowering(const Arrangement& all, const WantedForm& form, Progress* progress)
      : all_(all), form_(form), progress_(progress) {
    const Format& source = all.source().format();
    keeps_ = source.writer == form.format->writer && source.rewrite == Rewrite::kIndex;
    for (const auto& input : all.inputs) lowered_.inputs.push_back(input.get());
  }

  Status describe() {
    Outputs& outputs = lowered_.outputs;
    const Provenance& provenance = all_.source().provenance();
    outputs.source = &all_.source();
    outputs.all_new = true;
    outputs.shard_bytes = form_.shard_bytes;
    if (!provenance.path_class.empty()) outputs.checkpoint_id = form_.out;
    outputs.save_id = provenance.save_id;
    outputs.attributes = provenance.plain_attributes;
    std::erase_if(outputs.attributes,
                  [](const auto& one) { return one.first == kFilledAttribute; });
    outputs.tensors.resize(all_.tensors.size());
    needed_.resize(all_.inputs.size());
    for (std::size_t i = 0; i < needed_.size(); ++i)
      needed_[i].resize(all_.inputs[i]->chunk_count(), false);
    SHW_CHECK(
        each_in_parallel(all_.tensors.size(), [&](std::size_t i) { return describe_tensor(i); }));
    for (const ArrangedObject& object : all_.objects) {
      const ObjectRow& row = all_.source().objects()[object.object];
      outputs.objects.push_back(
          {object.fqn, row.item, row.transforms, object.path, plain_of(object)});
    }
    std::sort(outputs.reordered.begin(), outputs.reordered.end());
    add_losses();
    auto laid_out = form_.format->writer->lay_out(outputs);
    if (!laid_out) return tl::unexpected<Error>(why_not_laid_out(std::move(laid_out).error()));
    lowered_.laid_out = std::move(*laid_out);
    return {};
  }

  Status make_program() {
    PartLowering parts(all_, builder_);
    expect_tiles();
    for (std::uint32_t input = 0; input < needed_.size(); ++input)
      SHW_CHECK(parts.prepare(input, chunks_in(needed_[input]), progress_));
    const std::vector<MadeGroup> groups = made_groups();
    for (std::size_t first = 0, count = 0; first < groups.size(); first += count) {
      count = groups_at_once(groups, first);
      std::vector<std::vector<std::vector<Part>>> of_tiles(count);
      std::vector<ArrangedTensor> tensors(count);
      SHW_CHECK(each_in_parallel(count, [&](std::size_t g) -> Status {
        SHW_TRY(tensors[g], tensor_of_group(groups[first + g]));
        PartIndex index(tensors[g]);
        return each_made(groups[first + g], [&](std::size_t, const MadeTile&, const Box& box) {
          of_tiles[g].push_back(index.parts_of_tile(box));
          return Status{};
        });
      }));
      for (std::size_t g = 0; g < count; ++g) {
        auto of_tile = of_tiles[g].begin();
        SHW_CHECK(
            each_made(groups[first + g], [&](std::size_t i, const MadeTile& tile, const Box& box) {
              const OutputTensor& out = lowered_.outputs.tensors[tile.tensor];
              OutputId output = builder_.add_output(out.fqn, out.dtype, out.shape, box);
              builder_.place(output, lowered_.laid_out.files[tile.file].path, tile.offset);
              if (static_cast<std::size_t>(output) != i)
                return Status(cannot_arrange(out.fqn, "its tiles are out of order"));
              return parts.add(output, tensors[g], *of_tile++, box);
            }));
      }
    }
    // Outputs have the numbers of the tiles that are made, until they are put in order.
    lowered_.program = builder_.take(&lowered_.made);
    SHW_CHECK(prove(lowered_.program));
    return each_in_parallel(groups.size(), [&](std::size_t g) -> Status {
      SHW_TRY(const ArrangedTensor tensor, tensor_of_group(groups[g]));
      PartIndex index(tensor);
      return each_made(groups[g], [&](std::size_t i, const MadeTile&, const Box& box) {
        return parts.check(lowered_.program, lowered_.made[i], tensor, index.parts_of_tile(box),
                           box);
      });
    });
  }

  LoweredArrangement take() { return std::move(lowered_); }

 private:
  // The tiles of one tensor that are made: [first, last) of laid_out.made.
  struct MadeGroup {
    std::uint32_t tensor = 0;
    std::size_t first = 0, last = 0;
  };
  std::vector<MadeGroup> made_groups() const {
    const std::vector<MadeTile>& made = lowered_.laid_out.made;
    std::vector<MadeGroup> groups;
    for (std::size_t i = 0; i < made.size(); ++i) {
      if (groups.empty() || groups.back().tensor != made[i].tensor)
        groups.push_back({made[i].tensor, i, i});
      groups.back().last = i + 1;
    }
    return groups;
  }

  static std::size_t groups_at_once(const std::vector<MadeGroup>& groups, std::size_t first) {
    std::size_t count = 0, tiles = 0;
    while (first + count < groups.size() && count < kTensorsAtOnce &&
           (count == 0 || tiles < kTilesAtOnce)) {
      tiles += groups[first + count].last - groups[first + count].first;
      ++count;
    }
    return count;
  }

  // As if every tile were one job from one source.
  void expect_tiles() {
    std::size_t numbers = 0;
    for (const MadeTile& tile : lowered_.laid_out.made)
      numbers += 3 * lowered_.outputs.tensors[tile.tensor].shape.size();
    builder_.expect(lowered_.laid_out.made.size(), lowered_.laid_out.made.size(), numbers);
  }

  Result<ArrangedTensor> tensor_of_group(const MadeGroup& group) const {
    if (is_cancelled(progress_)) return cancelled_error();
    return arranged_for(all_, all_.tensors[group.tensor], form_);
  }

  // visit(index in laid_out.made, the tile, its box)
  template <class Visit>
  Status each_made(const MadeGroup& group, Visit visit) const {
    for (std::size_t i = group.first; i < group.last; ++i) {
      const MadeTile& tile = lowered_.laid_out.made[i];
      SHW_CHECK(visit(i, tile, lowered_.outputs.tensors[tile.tensor].tiles[tile.tile].box));
    }
    return {};
  }

  // The value of an entry, for a format that takes no item of the source. What cannot be said
  // without code is left for the writer to refuse: it names all that it has no place for.
  std::string plain_of(const ArrangedObject& object) {
    const Checkpoint& source = all_.source();
    if (keeps_ && source.objects()[object.object].item) return std::string();
    auto plain = read_plain_opcodes(source, object.object);
    if (plain) return std::move(*plain);
    unsaid_[object.fqn] = std::move(plain).error();
    return std::string();
  }

  Error why_not_laid_out(Error error) const {
    auto found = unsaid_.find(error.place.tensor);
    return found == unsaid_.end() ? error : found->second;
  }

  Status describe_tensor(std::size_t at) {
    if (is_cancelled(progress_)) return cancelled_error();
    const ArrangedEntry& entry = all_.tensors[at];
    SHW_TRY(const ArrangedTensor tensor, arranged_for(all_, entry, form_));
    SHW_CHECK(check_is_whole(tensor));
    const Provenance& provenance = all_.source().provenance();
    OutputTensor& out = lowered_.outputs.tensors[at];
    out.fqn = entry.fqn;
    out.dtype = tensor.dtype;
    out.requires_grad = tensor.requires_grad;
    out.shape = tensor.shape;
    out.path = tensor.path;
    out.before = tensor.before;
    const PartIndex index(tensor);
    out.tiles.reserve(tensor.tiles.size());
    for (const ArrangedTile& tile : tensor.tiles) {
      OutputTile made{tile.box, tile.writer};
      auto parts = keeps_ ? index.parts_of_tile(tile.box) : std::vector<Part>{};
      if (parts.size() == 1) made.kept = kept_chunk(all_, tensor, parts.front(), tile.box);
      if (!made.kept) need(parts);
      out.tiles.push_back(std::move(made));
    }
    if (!keeps_) need(tensor.parts);
    bool was_reordered = tensor.before && std::binary_search(provenance.reordered.begin(),
                                                             provenance.reordered.end(),
                                                             all_.source().fqn(*tensor.before));
    if (was_reordered || tensor.is_moved) {
      std::lock_guard lock(guard_);
      lowered_.outputs.reordered.push_back(out.fqn);
    }
    return {};
  }

  // Their chunks will be read.
  void need(const std::vector<Part>& parts) {
    std::lock_guard lock(guard_);
    for (const Part& part : parts) {
      if (const auto* from = std::get_if<FromChunk>(&part.from))
        needed_[from->input][index_of(from->chunk)] = true;
    }
  }

  void add_losses() {
    FilledRecord record;
    auto losses = losses_after(all_);
    std::map<std::string_view, const OutputTensor*> outputs;
    if (!losses.empty()) {
      for (const OutputTensor& out : lowered_.outputs.tensors) outputs[out.fqn] = &out;
    }
    for (auto& [fqn, loss] : losses) {
      FilledTensor tensor{fqn, {}};
      if (auto found = outputs.find(fqn); found != outputs.end())
        tensor.shape = found->second->shape;
      for (const Box& box : loss.boxes) tensor.lost += volume(box.sizes).value_or(0);
      tensor.boxes = std::move(loss.boxes);
      tensor.fill = loss.fill;
      tensor.fill_from = loss.fill_from;
      tensor.fill_checkpoint = loss.fill_checkpoint;
      lowered_.outputs.filled.push_back(fqn);
      record.tensors.push_back(std::move(tensor));
    }
    lowered_.outputs.filled_text = [record =
                                        std::move(record)](const std::vector<std::string>& fqns) {
      FilledRecord own;
      for (const FilledTensor& tensor : record.tensors) {
        if (std::find(fqns.begin(), fqns.end(), tensor.fqn) != fqns.end())
          own.tensors.push_back(tensor);
      }
      return own.empty() ? std::string() : filled_to_json(own, kMaxFilledBoxes);
    };
  }

  const Arrangement& all_;
  const WantedForm& form_;
  Progress* progress_;
  bool keeps_ = false;
  std::mutex guard_;
  std::vector<std::vector<bool>> needed_;  // chunks, by input
  std::map<std::string, Error> unsaid_;    // entries whose value is more than plain data
  ProgramBuilder builder_;
  LoweredArrangement lowered_;
};

}  // namespace

Result<ArrangedTensor> arranged_for(const Arrangement& all, const ArrangedEntry& entry,
                                    const WantedForm& form) {
  if (!form.format->traits.one_piece) return tensor_of(all, entry);
  ArrangedEntry in_one_piece = entry;
  in_one_piece.tiling = WholeTiling{};
  return tensor_of(all, in_one_piece);
}

std::vector<std::pair<std::string, Loss>> losses_after(const Arrangement& all) {
  std::vector<std::pair<std::string, Loss>> losses;
  for (const ArrangedEntry& entry : all.tensors) {
    if (entry.made != nullptr) {
      if (!entry.made->loss().boxes.empty()) losses.emplace_back(entry.fqn, entry.made->loss());
    } else if (auto found = all.losses.find(entry.fqn); found != all.losses.end()) {
      losses.emplace_back(entry.fqn, found->second);
    }
  }
  return losses;
}

Result<LoweredArrangement> lower_arrangement(const Arrangement& all, const WantedForm& form,
                                             Progress* progress) {
  if (form.format == nullptr || form.format->writer == nullptr) {
    return fail(ErrorKind::kUnsupported,
                fmt::format("{} is not written yet",
                            form.format == nullptr ? "this format" : form.format->title));
  }
  Lowering lowering(all, form, progress);
  SHW_CHECK(lowering.describe());
  SHW_CHECK(lowering.make_program());
  return lowering.take();
}

}  // namespace shw
