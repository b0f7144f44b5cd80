// A repair of a checkpoint of which data files are gone or cut off, where a person says what shall
// stand in the place of what lay there (--fill): a plan of steps that keeps all else.
#pragma once

#include <optional>
#include <string>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/transform/steps_json.h"
#include "core/verbs/verbs.h"

namespace shw::verbs {

// Nothing where every item lies in its file, or nobody said what to fill with: that files are gone
// is then told, for who can bring them back. Of a moment that lost elements those of the other one
// are given up too; entries that are no tensors, in which nothing can be filled, are left behind.
Result<std::optional<StepPlan>> plan_dropping_missing_data(const Opened& opened,
                                                           const std::string& fill,
                                                           Progress* progress);

}  // namespace shw::verbs
