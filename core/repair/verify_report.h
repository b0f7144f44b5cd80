// What came of holding a checkpoint against its certificate.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shw {

struct VerifyReport {
  enum class Outcome : std::uint8_t { kProved, kBroken, kUndecided } outcome = Outcome::kUndecided;
  std::vector<std::string>
      reasons;  // why not proved, each with file and tensor; or what was proved
  std::int64_t tensors = 0, kept = 0, lost = 0;
};
std::string_view name(VerifyReport::Outcome outcome);  // "proved", "broken", "undecided"

}  // namespace shw
