#include "core/session/stopped_run.h"

#include <algorithm>
#include <vector>

#include "core/io/store.h"

namespace shw {

std::shared_ptr<const verbs::StoppedRuns> search_stopped_runs(const Snapshot& snapshot,
                                                              const std::string& output) {
  std::vector<std::string> outputs;
  if (snapshot.stopped != nullptr) outputs = snapshot.stopped->outputs;
  if (!output.empty() && std::find(outputs.begin(), outputs.end(), output) == outputs.end())
    outputs.push_back(output);
  return std::make_shared<const verbs::StoppedRuns>(verbs::find_stopped_runs(
      posix_store(), *snapshot.checkpoint, snapshot.options.checkpoint, std::move(outputs)));
}

}  // namespace shw
