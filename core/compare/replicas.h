// Copies of one tile that several ranks wrote into one checkpoint: loading takes one and passes
// over the others, so that they must agree before anything is said of "the" values.
#pragma once

#include <map>
#include <string>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/model/checkpoint.h"

namespace shw {

// By tensor, why its copies do not settle what it holds: they differ, or one cannot be read.
Result<std::map<TensorId, std::string>> doubtful_replicas(const Checkpoint& checkpoint,
                                                          Progress* progress);

}  // namespace shw
