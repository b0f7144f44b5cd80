// A quantised checkpoint compared with plain weights of the same model, or the other way round. The
// packed weights have other names, shapes and dtypes by design, so they are not compared.
#pragma once

#include <optional>
#include <set>
#include <string_view>

#include "core/base/progress.h"
#include "core/model/checkpoint.h"
#include "core/model/finding.h"
#include "core/spec/spec.h"
#include "core/spec/spec_from_checkpoint.h"

namespace shw {

// The first evidence key of the finding.
inline constexpr std::string_view kQuantisedSide = "quantised_side";

struct OneSideQuantised {
  // Packed weights and their companions on one side, the same weights as floats on the other.
  std::set<TensorId> here, there;
  std::optional<Finding> finding;  // an info that names them; set if there are any
};

// Empty unless one side has quantised weights, and the other side has none at all: where both have
// some, a weight that only one of them quantises is a difference to report.
OneSideQuantised find_one_side_quantised(const Checkpoint& checkpoint, const Checkpoint& reference,
                                         Progress* progress);

// Removes their matches by name.
void unmatch(const OneSideQuantised& sides, NameMap& names);
// Removes what the reference would expect of them. A weight of equal name and shape keeps the
// shape: only its dtype is not expected.
void drop_expectations(const OneSideQuantised& sides, const Checkpoint& checkpoint,
                       const Checkpoint& reference, Spec& spec);

}  // namespace shw
