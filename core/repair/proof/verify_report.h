// Result of checking a checkpoint against its certificate.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/shape.h"

namespace shw {

// An element of the result that differs from the source by the plan.
struct Difference {
  std::string tensor;
  Extents index;
  std::string file;             // in the result
  std::string value, expected;  // as text
};

// Result of comparing a result with its source.
struct SourceReport {
  std::string source;                        // its folder
  std::int64_t compared = 0;                 // elements read on both sides and found equal
  std::vector<Difference> differences = {};  // the first of each tile, for the first tiles
  std::int64_t tiles_that_differ = 0;
};

struct VerifyReport {
  enum class Outcome : std::uint8_t { kProved, kBroken, kUndecided } outcome = Outcome::kUndecided;
  std::vector<std::string>
      reasons;  // reasons why it is not proved, each with file and tensor; or the proved statements
  std::int64_t tensors = 0, kept = 0, lost = 0;
  std::int64_t out_of_range = 0;             // elements: TensorCertificate::out_of_range
  std::int64_t damaged = 0;                  // elements: TensorCertificate::damaged
  std::optional<SourceReport> against = {};  // set if a source was given
};
std::string_view name(VerifyReport::Outcome outcome);  // "proved", "broken", "undecided"

}  // namespace shw
