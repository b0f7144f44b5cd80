// Parts that wrappers of a model put into the names of its tensors. No model calls a module so.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shw {

struct WrapperMark {
  std::string_view part;  // "_orig_mod"
  std::string_view by;    // who puts it there
  bool front = false;     // a mark only as the first part: a model may call a module so
};

struct Unwrapped {
  std::string name;                       // as the model calls it
  std::vector<const WrapperMark*> marks;  // that stood in it, each once
};

// Marks that stand anywhere are dropped; `front` ones where the caller knows that all names begin
// with them ("module").
Unwrapped without_wrappers(std::string_view name, bool with_front);

// "`_orig_mod.` (torch.compile)"
std::string mark_text(const WrapperMark& mark);

// "base_model.model." with which PEFT's wrapped model begins.
inline constexpr std::string_view kPeftRoot = "base_model.model.";

// "lora_A", "lora_magnitude_vector", "ia3_l": a part that names a tensor of an adapter.
bool is_adapter_name(std::string_view name);

}  // namespace shw
