// Searches for the unfinished repairs of the open checkpoint.
#pragma once

#include <memory>
#include <string>

#include "core/session/snapshot.h"

namespace shw {

// `output`: also searched for, besides those of earlier searches; may be empty.
std::shared_ptr<const verbs::StoppedRuns> search_stopped_runs(const Snapshot& snapshot,
                                                              const std::string& output = {});

}  // namespace shw
