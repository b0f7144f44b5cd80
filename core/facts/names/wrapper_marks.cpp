#include "core/facts/names/wrapper_marks.h"

#include <algorithm>
#include <array>

namespace shw {
namespace {

constexpr std::string_view kByPeft = "an unmerged PEFT model";
constexpr auto kMarks = std::to_array<WrapperMark>({
    {"_orig_mod", "torch.compile"},
    {"_fsdp_wrapped_module", "FSDP"},
    {"_checkpoint_wrapped_module", "activation checkpointing"},
    {"_forward_module", "Lightning Fabric"},
    {"base_layer", kByPeft},
    {"original_module", kByPeft},
    {"module", "DDP, DataParallel or DeepSpeed", true},
});

const WrapperMark* find_wrapper_mark(std::string_view part, bool with_front, bool is_first) {
  for (const WrapperMark& mark : kMarks) {
    if (mark.part == part && (!mark.front || (with_front && is_first))) return &mark;
  }
  return nullptr;
}

}  // namespace

Unwrapped without_wrappers(std::string_view name, bool with_front) {
  Unwrapped out;
  bool is_first = true;
  while (!name.empty()) {
    const std::size_t dot = name.find('.');
    const std::string_view part = name.substr(0, dot);
    name = dot == std::string_view::npos ? std::string_view{} : name.substr(dot + 1);
    const WrapperMark* mark =
        name.empty() ? nullptr : find_wrapper_mark(part, with_front, is_first);
    // Another wrapper may follow: "_orig_mod.module.".
    is_first = is_first && mark != nullptr;
    if (mark == nullptr) {
      if (!out.name.empty()) out.name += '.';
      out.name += part;
    } else if (std::find(out.marks.begin(), out.marks.end(), mark) == out.marks.end()) {
      out.marks.push_back(mark);
    }
  }
  return out;
}

std::string mark_text(const WrapperMark& mark) {
  return "`" + std::string(mark.part) + ".` (" + std::string(mark.by) + ")";
}

bool is_adapter_name(std::string_view name) {
  constexpr auto kParts = std::to_array<std::string_view>(
      {".lora_", ".ia3_l", ".hada_", ".lokr_", ".oft_", ".vera_lambda", ".boft_", ".adalora_",
       "prompt_embeddings", ".prefix_encoder"});
  return std::any_of(kParts.begin(), kParts.end(), [&](std::string_view part) {
    return name.find(part) != std::string_view::npos;
  });
}

}  // namespace shw
