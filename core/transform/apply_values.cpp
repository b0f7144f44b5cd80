// Steps that change the values of elements.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>

#include "core/base/checked.h"
#include "core/facts/storage/filled.h"
#include "core/model/reachable.h"
#include "core/tensor/cast.h"
#include "core/tensor/element_text.h"
#include "core/tiles/exact_tiling.h"
#include "core/transform/box_index.h"
#include "core/transform/named_entries.h"

namespace shw {
namespace {

// Casts a constant; fails if the number that the user gave would change.
Status cast_constant(const TargetTensor& tensor, Dtype to, FromConstant& constant) {
  const Dtype from = tensor.dtype;
  FromConstant made;
  std::uint8_t out_of_range = 0;
  const auto* bytes = reinterpret_cast<const std::byte*>(constant.bits.data());
  cast_row(from, bytes, static_cast<std::int64_t>(size_of(from)), to,
           reinterpret_cast<std::byte*>(made.bits.data()), static_cast<std::int64_t>(size_of(to)),
           1, &out_of_range);
  if (out_of_range != 0) {
    return step_error(tensor.fqn,
                      fmt::format("holds {} where it was filled, which is beyond what {} holds",
                                  element_text(from, {bytes, size_of(from)}, 0), name(to)));
  }
  constant.bits = made.bits;
  return {};
}

Status cast_tensor(TargetTensor& tensor, Dtype to) {
  if (tensor.dtype == to) return {};
  if (!can_cast(tensor.dtype, to)) {
    return step_error(tensor.fqn, fmt::format("is {}, and there is no cast from that to {}",
                                              name(tensor.dtype), name(to)));
  }
  for (Part& part : tensor.parts) {
    auto* constant = std::get_if<FromConstant>(&part.from);
    if (constant != nullptr) {
      SHW_CHECK(cast_constant(tensor, to, *constant));
      part.saved = to;
    } else {
      part.casts.push_back(to);
    }
  }
  tensor.is_cast = tensor.is_cast || !keeps_every_value(to, tensor.dtype);
  tensor.dtype = to;
  return {};
}

// The dim with the most different box offsets.
std::size_t most_divided_dim_of_boxes(const std::vector<Box>& boxes) {
  std::size_t best = 0, most = 0;
  for (std::size_t d = 0; d < boxes.front().sizes.size(); ++d) {
    std::set<std::int64_t> begins;
    for (const Box& box : boxes) begins.insert(box.offsets[d]);
    if (begins.size() > most) {
      most = begins.size();
      best = d;
    }
  }
  return best;
}

// Adds what remains of `part` without the boxes in `near`. They are subtracted in the order of
// their offsets along `dim`, so that pieces that end before the next box are finished early.
void add_part_outside_boxes(Part part, const std::vector<Box>& boxes,
                            std::vector<std::uint32_t>& near, std::size_t dim,
                            std::vector<Part>& out) {
  std::stable_sort(near.begin(), near.end(), [&](std::uint32_t a, std::uint32_t b) {
    return boxes[a].offsets[dim] < boxes[b].offsets[dim];
  });
  std::vector<Part> rest, next;
  rest.push_back(std::move(part));
  for (std::uint32_t i : near) {
    next.clear();
    for (Part& one : rest) {
      bool ends_before = one.box.offsets[dim] + one.box.sizes[dim] <= boxes[i].offsets[dim];
      if (ends_before) {
        out.push_back(std::move(one));
      } else if (!intersect(one.box, boxes[i])) {
        next.push_back(std::move(one));
      } else {
        for (Part& piece : subtract_box_from_part(one, boxes[i])) next.push_back(std::move(piece));
      }
    }
    std::swap(rest, next);
  }
  std::move(rest.begin(), rest.end(), std::back_inserter(out));
}

// Removes the boxes from the tensor's parts.
void remove_boxes_from_parts(TargetTensor& tensor, const std::vector<Box>& boxes) {
  if (boxes.empty()) return;
  if (tensor.shape.empty()) {  // a scalar
    tensor.parts.clear();
    return;
  }
  const std::size_t dim = most_divided_dim_of_boxes(boxes);
  BoxIndex index(dim);
  for (std::uint32_t i = 0; i < boxes.size(); ++i) index.add(boxes[i], i);
  index.sort();
  std::vector<Part> left;
  std::vector<std::uint32_t> near;
  for (Part& part : tensor.parts) {
    index.near(part.box, near);
    add_part_outside_boxes(std::move(part), boxes, near, dim, left);
  }
  tensor.parts = std::move(left);
}

// Marks the boxes as lost, unless they already are.
Status add_loss(TargetTensor& tensor, const std::vector<Box>& boxes, const std::string& fill,
                const std::string& fill_from, const std::string& fill_checkpoint) {
  if (boxes.empty()) return {};
  std::size_t looks = 20'000'000;
  Loss& loss = tensor.loss;
  merge_fill_source(loss, Loss{{}, fill, fill_from, fill_checkpoint}, loss.boxes.empty());
  if (!add_all_disjoint(loss.boxes, boxes, looks)) loss.boxes = {whole(tensor.shape)};
  return {};
}

// Boxes inside `box` that still have their own saved elements.
std::vector<Box> saved_boxes_in(const TargetTensor& tensor, const Box& box) {
  std::vector<Box> saved;
  for (const Part& part : tensor.parts) {
    if (!std::holds_alternative<FromChunk>(part.from)) continue;
    auto common = box.sizes.empty() ? std::optional<Box>(box) : intersect(part.box, box);
    if (common) saved.push_back(std::move(*common));
  }
  return saved;
}

// Splits boxes that may overlap into disjoint boxes. Returns all or an error, because elements of
// an omitted box would be neither filled nor reported.
Result<std::vector<Box>> disjoint(const TargetTensor& tensor, const std::vector<Box>& boxes) {
  std::vector<Box> out;
  std::size_t looks = 20'000'000;
  if (!add_all_disjoint(out, boxes, looks))
    return step_error(tensor.fqn, "its boxes meet each other too often: give fewer, larger ones");
  return out;
}

bool is_in_lost_file(const Checkpoint& source, const FillStep& step, ChunkId chunk) {
  if (!step.left) return !is_reachable(source, chunk);
  const auto item = source.item(chunk);
  if (!item || item->file == FileId::kNone || !source.file(item->file).safe) return true;
  auto found = step.left->find(source.file(item->file).path);
  return found != step.left->end() && !range_in_file(*item, found->second);
}

// Leaves holes where the files of tiles are missing or too short.
void remove_lost_parts(const Checkpoint& source, const FillStep& step, TargetTensor& tensor) {
  std::erase_if(tensor.parts, [&](const Part& part) {
    const auto* from = std::get_if<FromChunk>(&part.from);
    return from != nullptr && from->input == 0 && is_in_lost_file(source, step, from->chunk);
  });
}

void add_missing_tiles(TargetTensor& tensor) {
  std::vector<Box> boxes;
  for (const TargetChunk& tile : tensor.tiles) boxes.push_back(tile.box);
  for (Box& box : complement(boxes, tensor.shape).value_or(std::vector<Box>{}))
    tensor.tiles.push_back({std::move(box), 0});
}

Status append_constant_parts(TargetTensor& tensor, const std::vector<Box>& boxes, double value) {
  SHW_TRY(FromConstant constant, constant_of(tensor.dtype, value));
  for (const Box& box : boxes) {
    if (!is_empty(box)) tensor.parts.push_back({box, constant, {}, {}, tensor.dtype});
  }
  return {};
}

// Fills the boxes from the same boxes of a tensor of another input.
Status fill_from_input(const TargetState& all, std::uint32_t input, const std::string& fqn,
                       TargetTensor& tensor, const std::vector<Box>& boxes) {
  auto id = all.inputs[input]->find(fqn);
  if (!id) return step_error(fqn, "is not in the checkpoint that it is to be filled from");
  SHW_TRY(TargetTensor from, target_tensor(all, input, *id));
  if (from.shape != tensor.shape) {
    return step_error(tensor.fqn, "is " + to_text(tensor.shape) + ", and what is to fill it, " +
                                      fqn + ", is " + to_text(from.shape));
  }
  SHW_TRY(std::vector<Box> holes, holes_in(from));
  if (!holes.empty()) return step_error(fqn, "has missing elements where it should fill others");
  SHW_CHECK(cast_tensor(from, tensor.dtype));
  for (const Box& box : boxes) {
    for (const Part& part : from.parts) {
      if (auto inside = part_inside(part, box)) tensor.parts.push_back(std::move(*inside));
    }
  }
  return {};
}

Result<std::uint32_t> input_named(const TargetState& all, const std::string& path) {
  for (std::uint32_t i = 0; i < all.inputs.size(); ++i) {
    const auto& directory = all.inputs[i]->directory();
    if (directory != nullptr && directory->name() == path) return i;
  }
  return fail(ErrorKind::kUsage, "is not a checkpoint that was opened for this plan", {path},
              "add it to the \"inputs\" of the plan, written the same way; a relative path starts "
              "at the folder of the plan's file");
}

}  // namespace

Status apply(TargetState& all, const CastStep& step) {
  return change_matching_tensors(
      all, step.tensors, [&](TargetTensor& tensor) { return cast_tensor(tensor, step.dtype); });
}

void resolve_missing(const Checkpoint& source, std::vector<Step>& steps) {
  std::optional<std::map<std::string, std::uint64_t>> left;
  for (Step& step : steps) {
    auto* fill = std::get_if<FillStep>(&step);
    if (fill == nullptr || !fill->gone || fill->left) continue;
    if (!left) {
      left.emplace();
      for (std::uint32_t c = 0; c < source.chunk_count(); ++c) {
        const auto item = source.item(ChunkId{c});
        if (!item || item->file == FileId::kNone || is_reachable(source, *item)) continue;
        const FileRow& file = source.file(item->file);
        left->emplace(file.path, file.kind == EntryKind::kFile ? file.size : 0);
      }
    }
    fill->left = left;
  }
}

Status apply(TargetState& all, const FillStep& step) {
  return change_matching_tensors(all, step.tensors, [&](TargetTensor& tensor) -> Status {
    std::vector<Box> boxes;
    if (step.boxes) {
      SHW_CHECK(check_boxes(tensor, *step.boxes));
      SHW_TRY(boxes, disjoint(tensor, *step.boxes));
      remove_boxes_from_parts(tensor, boxes);
    } else {
      if (step.gone) remove_lost_parts(all.source(), step, tensor);
      SHW_TRY(boxes, holes_in(tensor));
    }
    if (boxes.empty()) return {};
    add_missing_tiles(tensor);
    if (step.from_checkpoint.empty()) {
      SHW_CHECK(append_constant_parts(tensor, boxes, step.value));
      return add_loss(tensor, boxes, step.value == 0 ? "zero" : "constant", "", "");
    }
    SHW_TRY(std::uint32_t input, input_named(all, step.from_checkpoint));
    std::string fqn = step.from_tensor.empty() ? tensor.fqn : step.from_tensor;
    SHW_CHECK(fill_from_input(all, input, fqn, tensor, boxes));
    return add_loss(tensor, boxes, "from", fqn, step.from_checkpoint);
  });
}

Status apply(TargetState& all, const MaskStep& step) {
  return change_matching_tensors(all, step.tensors, [&](TargetTensor& tensor) -> Status {
    SHW_CHECK(check_boxes(tensor, step.boxes));
    SHW_TRY(std::vector<Box> boxes, disjoint(tensor, step.boxes));
    remove_boxes_from_parts(tensor, boxes);
    SHW_CHECK(append_constant_parts(tensor, boxes, step.value));
    return boxes.empty() ? Status{}
                         : add_loss(tensor, boxes, step.value == 0 ? "zero" : "constant", "", "");
  });
}

namespace {

// Checks that there is a factor for every block of the tensor.
Status check_scale_factor_shapes(const TargetTensor& tensor, const TargetTensor& factors,
                                 const Extents& block) {
  bool fits = block.size() == tensor.shape.size() && factors.shape.size() == block.size();
  for (std::size_t d = 0; fits && d < block.size(); ++d) {
    fits = block[d] > 0 &&
           factors.shape[d] == tensor.shape[d] / block[d] + (tensor.shape[d] % block[d] != 0);
  }
  if (!fits) {
    return step_error(
        tensor.fqn,
        fmt::format("is {}, and {} of {} are not factors for blocks of {}", to_text(tensor.shape),
                    factors.fqn, to_text(factors.shape), to_text(block)));
  }
  if (factors.dtype != Dtype::kFloat32)
    return step_error(factors.fqn, "holds factors that are not float32");
  SHW_TRY(std::vector<Box> holes, holes_in(factors));
  if (!holes.empty()) return step_error(factors.fqn, "holds factors and has holes");
  for (const Part& part : factors.parts) {
    if (!part.casts.empty()) return step_error(factors.fqn, "holds factors and was cast");
  }
  return {};
}

// Marks elements as lost if their factor is lost.
Status add_loss_of_factors(TargetTensor& tensor, const TargetTensor& factors,
                           const Extents& block) {
  std::vector<Box> boxes;
  for (const Box& lost : factors.loss.boxes) {
    Box box = lost;
    for (std::size_t d = 0; d < block.size(); ++d) {
      const std::int64_t last = lost.offsets[d] + lost.sizes[d];
      const std::int64_t end = last == factors.shape[d] ? tensor.shape[d] : last * block[d];
      box.offsets[d] = lost.offsets[d] * block[d];
      box.sizes[d] = end - box.offsets[d];
    }
    boxes.push_back(std::move(box));
  }
  return add_loss(tensor, boxes, "mixed", "", "");
}

Status dequantise(TargetState& all, const DequantiseStep& step, std::size_t entry) {
  SHW_TRY(TargetTensor tensor, copy_of_entry(all, entry));
  SHW_TRY(std::size_t at, entry_named(all, tensor.fqn + step.suffix));
  SHW_TRY(TargetTensor factors, copy_of_entry(all, at));
  SHW_CHECK(check_scale_factor_shapes(tensor, factors, step.block));
  if (!can_cast(tensor.dtype, Dtype::kFloat32) || !can_cast(Dtype::kFloat32, step.dtype))
    return step_error(tensor.fqn, fmt::format("cannot be dequantised from {} to {}",
                                              name(tensor.dtype), name(step.dtype)));
  SHW_CHECK(add_loss_of_factors(tensor, factors, step.block));
  auto number = static_cast<std::uint32_t>(all.factors.size());
  all.factors.push_back(std::make_shared<const TargetTensor>(std::move(factors)));
  for (Part& part : tensor.parts) {
    if (std::holds_alternative<FromConstant>(part.from) || part.scaling || !part.casts.empty())
      return step_error(tensor.fqn, "was filled or cast before it is dequantised");
    part.scaling =
        Scaling{number, part.box.offsets, step.block, identity_order(tensor.shape.size())};
    part.casts = {Dtype::kFloat32};
    if (step.dtype != Dtype::kFloat32) part.casts.push_back(step.dtype);
  }
  tensor.dtype = step.dtype;
  tensor.is_cast = true;
  replace_entry_tensor(all, entry, std::move(tensor));
  return {};
}

}  // namespace

Status apply(TargetState& all, const DequantiseStep& step) {
  SHW_TRY(auto entries, entries_named(all, step.tensors));
  std::vector<std::string> used;
  for (std::size_t entry : entries) {
    // A pattern like "*.weight*" also matches the factors themselves.
    if (all.tensors[entry].fqn.ends_with(step.suffix)) continue;
    SHW_CHECK(dequantise(all, step, entry));
    used.push_back(all.tensors[entry].fqn + step.suffix);
  }
  if (used.empty())
    return step_error(step.tensors.front(), "names only factors, and no tensor that has some");
  for (const std::string& fqn : used) {
    SHW_TRY(std::size_t entry, entry_named(all, fqn));
    remove_entry(all, entry);
  }
  return {};
}

Status apply(TargetState& all, const RestoreStep& step) {
  return change_matching_tensors(all, {step.tensor}, [&](TargetTensor& tensor) -> Status {
    Box box{step.at, step.payload.sizes};
    SHW_CHECK(check_boxes(tensor, {box}));
    if (!can_cast(step.dtype, tensor.dtype))
      return step_error(step.tensor, fmt::format("is {}, and {} cannot be cast to that",
                                                 name(tensor.dtype), name(step.dtype)));
    auto elements = volume(box.sizes);
    auto bytes = elements ? checked_mul(static_cast<std::uint64_t>(*elements),
                                        std::uint64_t{size_of(step.dtype)})
                          : std::nullopt;
    if (!bytes || *bytes != step.payload.length)
      return step_error(step.tensor,
                        fmt::format("{} of {} do not take {} bytes", to_text(box.sizes),
                                    name(step.dtype), step.payload.length));
    if (is_empty(box)) return {};
    SHW_CHECK(add_loss(tensor, saved_boxes_in(tensor, box), "side", "", ""));
    remove_boxes_from_parts(tensor, {box});
    add_missing_tiles(tensor);
    std::size_t ndim = box.sizes.size();
    Part part{std::move(box), step.payload, Extents(ndim, 0), identity_order(ndim), step.dtype};
    if (step.dtype != tensor.dtype) {
      part.casts = {tensor.dtype};
      tensor.is_cast = true;
    }
    tensor.parts.push_back(std::move(part));
    return {};
  });
}

}  // namespace shw
