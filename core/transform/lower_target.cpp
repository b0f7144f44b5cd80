#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <span>
#include <string_view>

#include "core/base/parallel.h"
#include "core/base/words.h"
#include "core/facts/storage/filled.h"
#include "core/formats/carried_values.h"
#include "core/formats/complete.h"
#include "core/model/reachable.h"
#include "core/model/repair_format.h"
#include "core/transform/fill_program.h"
#include "core/transform/json.h"
#include "core/transform/lower.h"
#include "core/transform/lower_parts.h"
#include "core/transform/part_index.h"
#include "core/transform/unclaimed_records.h"

namespace shw {
namespace {

// Checks that every element has exactly one origin.
Status check_is_whole(const TargetTensor& tensor) {
  SHW_TRY(std::vector<Box> holes, holes_in(tensor));
  if (holes.empty()) return {};
  std::int64_t missing = 0;
  for (const Box& box : holes) missing += volume(box.sizes).value_or(0);
  return cannot_make_target(
      tensor.fqn,
      fmt::format("{} of its {} elements are saved nowhere, the first at {}",
                  human_count(static_cast<std::uint64_t>(missing)),
                  human_count(static_cast<std::uint64_t>(volume(tensor.shape).value_or(0))),
                  to_text(holes.front())),
      "repair it first, or add a step that fills it");
}

// The chunk that a tile keeps whole and unchanged; nullopt if elements must be computed.
std::optional<ChunkId> kept_chunk(const TargetState& all, const TargetTensor& tensor,
                                  const Part& part, const Box& tile) {
  const auto* from = std::get_if<FromChunk>(&part.from);
  bool whole_tile = part.box == tile && part.casts.empty() && !part.scaling;
  if (from == nullptr || from->input != 0 || !whole_tile) return std::nullopt;
  const Checkpoint& source = all.source();
  bool same_box =
      same(source.sizes(from->chunk), tile.sizes) &&
      part.order == identity_order(tile.sizes.size()) &&
      std::all_of(part.first.begin(), part.first.end(), [](std::int64_t at) { return at == 0; });
  // An item describes itself, so a view into a longer storage cannot be kept: it would contain more
  // than the tile.
  bool own_item = same_box && source.item(from->chunk) && !source.view(from->chunk) &&
                  source.dtype(source.tensor_of(from->chunk)) == tensor.dtype;
  return own_item ? std::optional(from->chunk) : std::nullopt;
}

// Record for the checkpoint's attributes, with merged boxes if there are very many; empty if
// nothing is lost.
std::string filled_attribute(const FilledRecord& record) {
  if (record.empty()) return "";
  constexpr std::size_t kMostBoxes = 500'000;  // 50 MB of text
  const std::size_t most = std::min(kMaxFilledBoxes, kMostBoxes / (record.tensors.size() + 1) + 1);
  return filled_to_json(record, most);
}

class Lowering {
 public:
  enum class OutputKind : std::uint8_t { kNewFolder, kInPlace };

  Lowering(const TargetState& all, const ResultFormat& form, OutputKind where, Progress* progress)
      : all_(all),
        form_(form),
        in_place_(where == OutputKind::kInPlace),
        progress_(progress),
        values_(all.source(), progress) {
    const Format& source = all.source().format();
    keeps_ = !form.keeps_files && source.writer == form.format->writer &&
             source.rewrite == Rewrite::kIndex;
    for (const auto& input : all.inputs) lowered_.inputs.push_back(input.get());
  }

  Status lay_out() {
    auto laid_out = form_.format->writer->lay_out(lowered_.outputs);
    if (!laid_out) return tl::unexpected<Error>(layout_error_of_entry(std::move(laid_out).error()));
    lowered_.laid_out = std::move(*laid_out);
    add_files(std::move(complements_));
    return {};
  }

  Status describe() {
    Outputs& outputs = lowered_.outputs;
    const Provenance& provenance = all_.source().provenance();
    outputs.source = &all_.source();
    outputs.all_new = !in_place_ && !form_.keeps_files;
    outputs.shard_bytes = form_.shard_bytes;
    if (!provenance.path_class.empty()) outputs.checkpoint_id = form_.out;
    outputs.save_id = provenance.save_id;
    outputs.attributes = other_attributes(all_.source());
    outputs.tensors.resize(all_.tensors.size());
    needed_.is_one_job.assign(all_.tensors.size(), 1);
    for (const auto& input : all_.inputs) needed_.chunks.emplace_back(input->chunk_count(), 0);
    SHW_CHECK(parallel_for(all_.tensors.size(), [&](std::size_t i) {
      if (progress_ != nullptr) progress_->add(1);
      return describe_tensor(i);
    }));
    if (!form_.keeps_files) SHW_CHECK(check_objects());
    for (const TargetNonTensorEntry& object : all_.objects) {
      if (object.created != nullptr) {
        if (in_place_)
          return cannot_make_target(object.fqn, "was created by a step, and has to be written");
        outputs.objects.push_back({object.fqn, {}, {}, object.path, *object.created});
        continue;
      }
      const NonTensorEntry& row = all_.source().objects()[object.object];
      outputs.objects.push_back({object.fqn, row.item, row.transforms, object.path});
      SHW_CHECK(add_value(object, outputs.objects.back()));
    }
    std::sort(outputs.reordered.begin(), outputs.reordered.end());
    const Format* before = &all_.source().format();
    if (!in_place_ && before != form_.format) {
      SHW_TRY(complements_, complete_outputs(*form_.format, outputs));
    }
    record_filled_tensors();
    if (!outputs.all_new) add_unclaimed_records(all_.source(), outputs);
    return {};
  }

  Status make_program() { return fill_program(all_, form_, needed_, lowered_, progress_); }

  LoweredTarget take() { return std::move(lowered_); }

 private:
  // Decodes an entry's value for a format that does not keep source items. A value that cannot be
  // expressed as plain data is left to the writer, which refuses all such entries together.
  Status add_value(const TargetNonTensorEntry& object, OutputObject& out) {
    if (form_.keeps_files || (keeps_ && all_.source().objects()[object.object].item)) return {};
    auto value = values_.of(object.object);
    if (value) {
      out.plain = std::move(value->opcodes);
      out.storages = std::move(value->storages);
      return {};
    }
    if (is_cancelled(progress_)) return cancelled_error();
    if (value.error().kind == ErrorKind::kIo)
      return tl::unexpected<Error>(std::move(value).error());
    out.unsaid = value.error().message;
    unwritable_entries_[object.fqn] = std::move(value).error();
    return {};
  }

  // Checks that all entries are readable, because nothing can replace them. The advice contains a
  // step that drops all unreadable ones, ready to copy.
  Status check_objects() const {
    const Checkpoint& source = all_.source();
    std::vector<std::string> gone;
    Status first;
    for (const TargetNonTensorEntry& object : all_.objects) {
      if (object.created != nullptr) continue;
      const NonTensorEntry& row = source.objects()[object.object];
      if (row.inlined || (row.item && is_reachable(source, *row.item))) continue;
      if (gone.empty()) first = check_reachable(source, row.item, row.fqn);
      gone.push_back(object.fqn);
    }
    if (first) return {};
    const EditedJson::Json step{{"step", "drop"}, {"tensors", gone}};
    first.error().advice = "restore the file; or drop its data with the step " +
                           step.dump(-1, ' ', false, EditedJson::Json::error_handler_t::replace);
    return first;
  }

  void add_files(SmallFiles files) {
    LaidOut& laid_out = lowered_.laid_out;
    for (auto& [path, bytes] : files) {
      const auto file = static_cast<std::uint32_t>(laid_out.files.size());
      laid_out.files.push_back({path, bytes.size(), true});
      laid_out.before.push_back({file, 0, std::move(bytes)});
    }
  }

  Error layout_error_of_entry(Error error) const {
    auto found = unwritable_entries_.find(error.place.tensor);
    return found == unwritable_entries_.end() ? error : found->second;
  }

  Status describe_tensor(std::size_t at) {
    if (is_cancelled(progress_)) return cancelled_error();
    const TargetEntry& entry = all_.tensors[at];
    SHW_TRY(const TargetTensor tensor, target_for(all_, entry, form_));
    if (!form_.keeps_files) SHW_CHECK(check_is_whole(tensor));
    const Provenance& provenance = all_.source().provenance();
    OutputTensor& out = lowered_.outputs.tensors[at];
    out.fqn = entry.fqn;
    out.dtype = tensor.dtype;
    out.requires_grad = tensor.requires_grad;
    out.shape = tensor.shape;
    out.path = tensor.path;
    out.before = tensor.before;
    const PartIndex index(tensor);
    std::vector<Part> parts;
    out.tiles.reserve(tensor.tiles.size());
    for (const TargetChunk& tile : tensor.tiles) {
      OutputTile made = tile;
      if (!made.kept) SHW_CHECK(describe_output_tile(at, index, parts, made));
      out.tiles.push_back(made);
    }
    bool was_reordered = tensor.before && std::binary_search(provenance.reordered.begin(),
                                                             provenance.reordered.end(),
                                                             all_.source().fqn(*tensor.before));
    if (was_reordered || tensor.is_moved) {
      std::lock_guard lock(guard_);
      lowered_.outputs.reordered.push_back(out.fqn);
    }
    return {};
  }

  // Decides if a tile keeps a saved item, otherwise notes what will be read for it.
  Status describe_output_tile(std::size_t at, const PartIndex& index, std::vector<Part>& parts,
                              OutputTile& tile) {
    const TargetTensor& tensor = index.tensor();
    const Part* whole_tile = index.parts_of_tile(tile.box, parts);
    if (keeps_ && whole_tile != nullptr)
      tile.kept = kept_chunk(all_, tensor, *whole_tile, tile.box);
    if (in_place_) {
      if (!tile.kept && is_empty(tile.box)) tile.kept = empty_chunk(tensor, tile.box);
      return tile.kept ? Status{} : moves(tensor);
    }
    if (tile.kept) return check_is_there({0, *tile.kept});
    SHW_CHECK(note_needed_chunks(whole_tile == nullptr ? parts : std::span(whole_tile, 1)));
    if (whole_tile == nullptr || whole_tile->scaling) needed_.is_one_job[at] = 0;
    return {};
  }

  // The saved empty chunk with the same box.
  std::optional<ChunkId> empty_chunk(const TargetTensor& tensor, const Box& tile) const {
    if (!tensor.before) return std::nullopt;
    for (ChunkId chunk : all_.source().chunks(*tensor.before)) {
      if (box_of(all_.source(), chunk) == tile) return chunk;
    }
    return std::nullopt;
  }
  static Status moves(const TargetTensor& tensor) {
    return cannot_make_target(tensor.fqn,
                              tensor.loss.boxes.empty()
                                  ? "bytes of it would have to move or to be written"
                                  : "elements of it are lost, and the fill has to be written");
  }

  // Notes the chunks that the parts read. Most tensors share no chunks with others.
  Status note_needed_chunks(std::span<const Part> parts) {
    for (const Part& part : parts) {
      if (const auto* chunk = std::get_if<FromChunk>(&part.from)) {
        SHW_CHECK(check_is_there(*chunk));
        note_needed_chunks(*chunk);
      } else if (const FromFile* file = part.file()) {
        std::lock_guard lock(guard_);
        needed_.files.push_back(*file);
      }
      if (part.scaling) mark_factor_chunks_needed(part);
    }
    return {};
  }
  Status check_is_there(const FromChunk& from) const {
    const Checkpoint& holder = *all_.inputs[from.input];
    Status there =
        check_reachable(holder, holder.item(from.chunk), holder.fqn(holder.tensor_of(from.chunk)));
    if (!there && from.input != 0)
      there.error().advice = "restore the file in the checkpoint that the plan reads it from";
    return there;
  }
  void note_needed_chunks(const FromChunk& from) {
    std::uint8_t& chunk = needed_.chunks[from.input][index_of(from.chunk)];
    std::atomic_ref<std::uint8_t>(chunk).store(1, std::memory_order_relaxed);
  }
  void mark_factor_chunks_needed(const Part& part) {
    const Box box = factor_box_of(part);
    for (const Part& factor : all_.factors[part.scaling->factors]->parts) {
      const auto* chunk = std::get_if<FromChunk>(&factor.from);
      bool meets = box.sizes.empty() || intersect(factor.box, box);
      if (chunk != nullptr && meets) note_needed_chunks(*chunk);
      if (const FromFile* file = factor.file(); file != nullptr && meets) {
        std::lock_guard lock(guard_);
        needed_.files.push_back(*file);
      }
    }
  }

  void record_filled_tensors() {
    FilledRecord record;
    auto losses = losses_after(all_);
    if (form_.keeps_files)
      std::sort(losses.begin(), losses.end(),
                [](const auto& a, const auto& b) { return a.first < b.first; });
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
      return filled_attribute(record.of_tensors(fqns));
    };
  }

  const TargetState& all_;
  const ResultFormat& form_;
  const bool in_place_;
  Progress* progress_;
  CarriedValues values_;
  bool keeps_ = false;
  std::mutex guard_;
  NeededParts needed_;
  SmallFiles complements_;  // files that readers of the format expect, next to copied ones
  // Entries whose value is more than plain data, with the reason.
  std::map<std::string, Error> unwritable_entries_;
  LoweredTarget lowered_;
};

// Refuses missing tensors: a result without them would look complete. If files are kept, the index
// still lists them.
Status check_no_missing_tensors(const TargetState& all) {
  if (all.nowhere.empty()) return {};
  const std::vector<std::string> names(all.nowhere.begin(), all.nowhere.end());
  return cannot_make_target(
      names.front(),
      fmt::format("cannot be carried over: of {} nothing but the name is known, since nothing that "
                  "can be read says more",
                  short_list_text(names)),
      "restore the files; or leave this out by name, with the plan step {\"step\": \"drop\", "
      "\"tensors\": [...]}");
}

}  // namespace

Result<LoweredTarget> lower_target(const TargetState& all, const ResultFormat& form,
                                   Progress* progress) {
  if (form.format == nullptr || form.format->writer == nullptr) {
    const std::string_view title = form.format == nullptr ? "this format" : form.format->title;
    if (!form.keeps_files)
      return fail(ErrorKind::kUnsupported, fmt::format("{} is not written yet", title));
    return fail(ErrorKind::kUnsupported, fmt::format("repairs of {} are not written yet", title),
                {},
                fmt::format("Write the result in another format: repeat this with `--then {}`.",
                            conversion_after_repair(all.source())));
  }
  if (!form.keeps_files) SHW_CHECK(check_no_missing_tensors(all));
  if (progress != nullptr) progress->begin(Phase::kPlanning, all.tensors.size(), false);
  Lowering lowering(all, form, Lowering::OutputKind::kNewFolder, progress);
  SHW_CHECK(lowering.describe());
  SHW_CHECK(lowering.lay_out());
  SHW_CHECK(lowering.make_program());
  return lowering.take();
}

Result<Outputs> outputs_in_place(const TargetState& all, const ResultFormat& form,
                                 Progress* progress) {
  if (!form.keeps_files) SHW_CHECK(check_no_missing_tensors(all));
  if (progress != nullptr) progress->begin(Phase::kPlanning, all.tensors.size(), false);
  Lowering lowering(all, form, Lowering::OutputKind::kInPlace, progress);
  SHW_CHECK(lowering.describe());
  return std::move(lowering.take().outputs);
}

}  // namespace shw
