// What is left of tensors that lost a part, and what it is worth: shared by the rules that place
// survivors (S2, S3, S4, S5 E1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "core/facts/layout/cut_orders.h"
#include "core/facts/states/optimizer_states.h"
#include "core/model/checkpoint.h"
#include "core/model/finding.h"

namespace shw {

// The whole item of `chunk`, `sizes` large, belongs at `at`.
Survivor whole_survivor(ChunkId chunk, ExtentsView sizes, ExtentsView at);
Box destination(const Survivor& survivor);

struct LostCount {
  std::int64_t kept = 0;
  std::int64_t lost = 0;
  std::int64_t refilled = 0;  // of the lost: a model tensor can fill them
};
LostCount loss_of(const PartlyLost& part);
LostCount loss_of(const std::vector<PartlyLost>& parts);

// Adam divides one moment by the root of the other: a row of one without the other does more harm
// than none (m known, v zero: an update of m / epsilon). Keeps of the moments of one parameter what
// all of them know. `parts` are those of one parameter.
void keep_common_rows(std::vector<PartlyLost*>& parts);

// The same of all parameters; `moments`: which of `parts` are moments. Those whose names differ in
// the kind alone are of one parameter, by one optimizer. Moments that are whole give up the rows
// that others lost: they are added to `parts`. Their names. `orders`: of tensors whose chunks
// belong elsewhere than they are recorded. `left_alone`: moments of which nobody knows where their
// chunks belong give up nothing.
std::vector<std::string> keep_common_moments(const Checkpoint& checkpoint,
                                             const std::vector<OtherOrder>& orders,
                                             const std::vector<std::size_t>& moments,
                                             std::vector<PartlyLost>& parts,
                                             const std::set<TensorId>& left_alone = {});

// "exp_avg from rank 1, exp_avg_sq from rank 2": who wrote what survived, kind by kind.
std::vector<std::string> writers_by_kind(const Checkpoint& checkpoint,
                                         const std::vector<OptimizerState>& states);

std::string count_text(std::int64_t count, std::string_view one, std::string_view many);

}  // namespace shw
