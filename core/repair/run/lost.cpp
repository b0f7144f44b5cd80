#include "core/repair/run/lost.h"

#include <algorithm>
#include <map>

#include "core/repair/lower/item_place.h"
#include "core/repair/lower/lower.h"
#include "core/repair/lower/moved_by.h"
#include "core/repair/plan/entries.h"
#include "core/tiles/exact_tiling.h"

namespace shw {
namespace {

// A new box and the box of the old tensor that it takes its elements from.
struct SourceBox {
  TensorId tensor{};
  Box source;  // in the old tensor
  Extents at;  // in the new tensor
  Extents permutation;
  bool loses_whole_box =
      false;  // true: elements are reshaped, so any loss in it counts for all of it
};

std::vector<SourceBox> source_boxes_of(const Checkpoint& checkpoint, const PlannedTensor& planned,
                                       const PlannedChunk& chunk) {
  std::vector<SourceBox> all;
  // The tensor's own bytes at another place: earlier losses in this box stay lost.
  if (external_item_place(checkpoint, chunk)) {
    all.push_back({planned.tensor, chunk.box, chunk.box.offsets, {}});
  } else if (chunk.item) {
    Box old = box_of(checkpoint, *chunk.item);
    bool other_sizes = !same(old.sizes, chunk.box.sizes);
    all.push_back({checkpoint.tensor_of(*chunk.item), old, chunk.box.offsets, {}, other_sizes});
  }
  for (const Piece& piece : chunk.pieces) {
    Box source = piece.source;
    source.offsets = translated(source.offsets, checkpoint.offsets(piece.chunk));
    all.push_back({checkpoint.tensor_of(piece.chunk), source,
                   translated(chunk.box.offsets, piece.at), piece.permutation});
  }
  return all;
}

Box moved(const Box& lost, const SourceBox& taken, const Box& new_box) {
  if (taken.loses_whole_box) return new_box;
  Box box{taken.at, lost.sizes};
  for (std::size_t d = 0; d < box.sizes.size(); ++d) {
    std::size_t old =
        taken.permutation.empty() ? d : static_cast<std::size_t>(taken.permutation[d]);
    box.sizes[d] = lost.sizes[old];
    box.offsets[d] += lost.offsets[old] - taken.source.offsets[old];
  }
  return box;
}

void copy_fill(FilledTensor& into, const FilledTensor& from) {
  merge_fill_source(into, from, into.fill.empty() && into.boxes.empty());
}

// Marks the whole tensor as lost if single elements cannot be tracked.
void mark_tensor_as_lost(FilledTensor& tensor) {
  tensor.boxes = {whole(tensor.shape)};
  tensor.has_all_boxes = true;
}

// Adds earlier losses that the new chunks contain, of this tensor or the one they come from.
void add_earlier_losses(const Checkpoint& checkpoint, const PlannedTensor& planned,
                        const FilledReport& earlier, FilledTensor& tensor) {
  std::size_t looks = 20'000'000;
  for (const PlannedChunk& chunk : planned.chunks) {
    for (const SourceBox& taken : source_boxes_of(checkpoint, planned, chunk)) {
      const FilledTensor* before = earlier.find(checkpoint.fqn(taken.tensor));
      if (before == nullptr) continue;
      std::vector<Box> brought;
      for (const Box& box : before->boxes) {
        auto common = box.sizes.empty() ? std::optional(box) : intersect(box, taken.source);
        if (common) brought.push_back(moved(*common, taken, chunk.box));
      }
      if (!brought.empty()) copy_fill(tensor, *before);
      if (add_all_disjoint(tensor.boxes, brought, looks) && before->has_all_boxes) continue;
      copy_fill(tensor, *before);
      return mark_tensor_as_lost(tensor);
    }
  }
}

FilledTensor planned_loss(const Checkpoint& checkpoint, const PlannedTensor& planned,
                          const FilledReport& earlier) {
  FilledTensor tensor{std::string(fqn_after(checkpoint, planned)), planned.shape};
  if (planned.lost_elements != 0) {
    tensor.boxes = planned.lost;
    tensor.fill = name(planned.fill);
    tensor.fill_from = planned.fill_from;
    bool elsewhere = planned.fill_source != nullptr && planned.fill_source->directory() != nullptr;
    if (elsewhere) tensor.fill_checkpoint = planned.fill_source->directory()->name();
  }
  if (!earlier.tensors.empty()) add_earlier_losses(checkpoint, planned, earlier, tensor);
  tensor.lost = total_volume(tensor.boxes).value_or(0);
  return tensor;
}

// Entries that earlier repairs replaced, under their new names.
std::vector<FilledEntry> entries_after(const Checkpoint& checkpoint, const Plan& plan,
                                       const FilledReport& earlier) {
  std::map<std::string, std::string> renamed;
  auto objects = checkpoint.objects();
  for (const RenamedObject& object : plan.objects) renamed[objects[object.object].fqn] = object.fqn;
  std::vector<FilledEntry> all;
  for (FilledEntry entry : earlier.entries) {
    if (auto found = renamed.find(entry.fqn); found != renamed.end()) entry.fqn = found->second;
    all.push_back(std::move(entry));
  }
  for (const PlannedEntry& entry : plan.entries)
    all.push_back({objects[entry.object].fqn, objects[entry.item_of].fqn});
  return all;
}

}  // namespace

FilledRecord losses_after_plan(const Checkpoint& checkpoint, const Plan& plan) {
  FilledReport earlier = filled_report_of(checkpoint);
  FilledRecord record;
  std::map<TensorId, const PlannedTensor*> planned;
  for (const PlannedTensor& tensor : plan.tensors) planned[tensor.tensor] = &tensor;
  for (const auto& [id, tensor] : planned) {
    FilledTensor filled = planned_loss(checkpoint, *tensor, earlier);
    if (filled.lost != 0) record.tensors.push_back(std::move(filled));
  }
  for (FilledTensor& tensor : earlier.tensors) {
    if (planned.contains(*checkpoint.find(tensor.fqn))) continue;
    if (!tensor.has_all_boxes) mark_tensor_as_lost(tensor);
    tensor.lost = total_volume(tensor.boxes).value_or(0);
    record.tensors.push_back(std::move(tensor));
  }
  std::sort(record.tensors.begin(), record.tensors.end(),
            [](const FilledTensor& a, const FilledTensor& b) { return a.fqn < b.fqn; });
  if (!keeps_every_entry(plan) || !earlier.entries.empty())
    record.entries = entries_after(checkpoint, plan, earlier);
  return record;
}

bool has_lost(const Certificate& certificate) {
  return !certificate.lossless &&
         (!certificate.entries.empty() ||
          std::any_of(certificate.tensors.begin(), certificate.tensors.end(),
                      [](const TensorCertificate& one) { return one.lost != 0; }));
}

std::string lost_to_json(const Certificate& certificate) {
  FilledRecord record;
  for (const TensorCertificate& tensor : certificate.tensors) {
    if (tensor.lost == 0) continue;
    record.tensors.push_back({tensor.fqn, tensor.shape, tensor.lost, tensor.lost_boxes, true,
                              tensor.fill, tensor.fill_from, tensor.fill_checkpoint});
  }
  for (const EntryCertificate& entry : certificate.entries)
    record.entries.push_back({entry.fqn, entry.from});
  return filled_to_json(record);
}

}  // namespace shw
