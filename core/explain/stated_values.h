// The two values of a sentence such as "expected torch.bfloat16, got torch.float16".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace shw {

struct StatedValues {
  std::string expected;  // what the program asks for
  std::string found;     // what the checkpoint, its config or the call gave it
};

// Nullopt if the sentence does not state both. Reads at most a few hundred characters.
std::optional<StatedValues> stated_values(std::string_view sentence);

}  // namespace shw
