// Name parts that wrappers of a model insert. No model has modules with these names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shw {

struct WrapperMark {
  std::string_view part;  // "_orig_mod"
  std::string_view by;    // the wrapper that inserts it
  bool front = false;     // only recognised as first part: models may use it elsewhere
};

struct Unwrapped {
  std::string name;                       // the name without wrappers
  std::vector<const WrapperMark*> marks;  // the marks that were removed, each once
};

// Removes marks anywhere in the name; `front` ones ("module") only if the caller knows that all
// names begin with them.
Unwrapped without_wrappers(std::string_view name, bool with_front);

// Formats as "`_orig_mod.` (torch.compile)".
std::string mark_text(const WrapperMark& mark);

// Prefix of the names in a model wrapped by PEFT.
inline constexpr std::string_view kPeftRoot = "base_model.model.";

// True for parts of adapter names: "lora_A", "lora_magnitude_vector", "ia3_l".
bool is_adapter_name(std::string_view name);

}  // namespace shw
