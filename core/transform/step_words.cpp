#include <fmt/core.h>

#include <cmath>

#include "core/base/words.h"
#include "core/transform/steps.h"

namespace shw {
namespace {

std::string listed(const Patterns& patterns) {
  return short_list_text(patterns);
}

struct StepName {
  std::string_view operator()(const RelabelStep&) const { return "relabel"; }
  std::string_view operator()(const RetileStep&) const { return "retile"; }
  std::string_view operator()(const ReshardStep&) const { return "reshard"; }
  std::string_view operator()(const PermuteDimsStep&) const { return "permute-dims"; }
  std::string_view operator()(const PermuteBlocksStep&) const { return "permute-blocks"; }
  std::string_view operator()(const SplitStep&) const { return "split"; }
  std::string_view operator()(const ConcatStep&) const { return "concat"; }
  std::string_view operator()(const PadStep&) const { return "pad"; }
  std::string_view operator()(const TrimStep&) const { return "trim"; }
  std::string_view operator()(const RenameStep&) const { return "rename"; }
  std::string_view operator()(const CopyStep&) const { return "copy"; }
  std::string_view operator()(const DropStep&) const { return "drop"; }
  std::string_view operator()(const CreateTensorsStep&) const { return "create-tensors"; }
  std::string_view operator()(const CreateEntriesStep&) const { return "create-entries"; }
  std::string_view operator()(const CastStep&) const { return "cast"; }
  std::string_view operator()(const AddStep&) const { return "add"; }
  std::string_view operator()(const FillStep&) const { return "fill"; }
  std::string_view operator()(const MaskStep&) const { return "mask"; }
  std::string_view operator()(const DequantiseStep&) const { return "dequantise"; }
  std::string_view operator()(const RestoreStep&) const { return "restore"; }
};

struct StepText {
  std::string operator()(const RelabelStep& step) const {
    return fmt::format("{}: {} placed again in {}", step.tensor, plural(step.tiles.size(), "chunk"),
                       to_text(step.shape));
  }
  std::string operator()(const RetileStep& step) const {
    return fmt::format("{}: cut into {}", listed(step.tensors),
                       plural(std::max<std::size_t>(step.tiles.size(), 1), "chunk"));
  }
  std::string operator()(const ReshardStep& step) const {
    return fmt::format("{}: cut for the mesh {} as {}", listed(step.tensors), to_text(step.mesh),
                       to_text(step.placements));
  }
  std::string operator()(const PermuteDimsStep& step) const {
    return fmt::format("{}: dims in the order {}", listed(step.tensors), to_text(step.order));
  }
  std::string operator()(const PermuteBlocksStep& step) const {
    return fmt::format("{}: {} of dim {} in another order", listed(step.tensors),
                       plural(step.order.size(), "block"), step.dim);
  }
  std::string operator()(const SplitStep& step) const {
    return fmt::format("{}: split along dim {} into {}", step.tensor, step.dim, listed(step.into));
  }
  std::string operator()(const ConcatStep& step) const {
    return fmt::format("{}: {} along dim {} as {}", listed(step.tensors),
                       step.new_dim ? "stacked" : "joined", step.dim, step.into);
  }
  std::string operator()(const PadStep& step) const {
    return fmt::format("{}: padded with {} by {} before and {} after", listed(step.tensors),
                       step.value, to_text(step.before), to_text(step.after));
  }
  std::string operator()(const TrimStep& step) const {
    return fmt::format("{}: trimmed to {}", listed(step.tensors), to_text(step.keep));
  }
  std::string operator()(const RenameStep& step) const {
    return fmt::format("{} becomes {}", step.from, step.to);
  }
  std::string operator()(const CopyStep& step) const {
    return fmt::format("{}: copied as {}", step.from, step.to);
  }
  std::string operator()(const DropStep& step) const { return listed(step.tensors) + ": left out"; }
  std::string operator()(const CreateTensorsStep& step) const {
    return fmt::format("{}: created as {} {} of {}", listed(step.tensors), shw::name(step.dtype),
                       to_text(step.shape), step.value);
  }
  std::string operator()(const CreateEntriesStep& step) const {
    return fmt::format("{}: created as {}", listed(step.entries), to_text(step.value));
  }
  std::string operator()(const CastStep& step) const {
    return fmt::format("{}: cast to {}", listed(step.tensors), shw::name(step.dtype));
  }
  std::string operator()(const AddStep& step) const {
    return fmt::format("{}: {} {} every element in float32, rounded to its dtype",
                       listed(step.tensors), std::abs(step.value),
                       step.value < 0 ? "taken off" : "added to");
  }
  std::string operator()(const FillStep& step) const {
    std::string what = step.boxes  ? plural(step.boxes->size(), "box")
                       : step.gone ? "what is missing or gone"
                                   : "what is missing";
    if (step.boxes && step.boxes->size() != 1) what = fmt::format("{} boxes", step.boxes->size());
    return step.from_checkpoint.empty()
               ? fmt::format("{}: {} filled with {}", listed(step.tensors), what, step.value)
               : fmt::format("{}: {} filled from {}", listed(step.tensors), what,
                             step.from_checkpoint);
  }
  std::string operator()(const MaskStep& step) const {
    return fmt::format(
        "{}: {} given up, {} is there", listed(step.tensors),
        step.boxes.size() == 1 ? std::string("1 box") : fmt::format("{} boxes", step.boxes.size()),
        step.value);
  }
  std::string operator()(const DequantiseStep& step) const {
    return fmt::format("{}: times the factors of blocks of {} in {}{}, as {}", listed(step.tensors),
                       to_text(step.block), "*", step.suffix, shw::name(step.dtype));
  }
  std::string operator()(const RestoreStep& step) const {
    return fmt::format("{}: {} at {} from {}", step.tensor, to_text(step.payload.sizes),
                       to_text(step.at), step.payload.file);
  }
};

}  // namespace

std::string_view name(const Step& step) {
  return std::visit(StepName{}, step);
}

std::string to_text(const Step& step) {
  return std::visit(StepText{}, step);
}

}  // namespace shw
