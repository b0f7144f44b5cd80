#include "core/facts/states/moment_pairs.h"

#include <map>
#include <optional>

#include "core/facts/states/optimizer_settings.h"

namespace shw {

std::vector<MomentPair> moment_pairs(const CheckInput& input) {
  const Checkpoint& checkpoint = input.checkpoint;
  struct Found {
    std::optional<TensorId> mean, square;
  };
  std::map<std::pair<std::string, std::string>, Found> by_key;
  for (TensorId tensor : each_tensor(input)) {
    std::string_view fqn = checkpoint.fqn(tensor);
    auto path = parse_state_fqn(fqn);
    if (!path || (path->kind != "exp_avg" && path->kind != "exp_avg_sq")) continue;
    Found& found = by_key[{optimizer_prefix(fqn).value_or(""), unwrapped_name(path->key)}];
    (path->kind == "exp_avg" ? found.mean : found.square) = tensor;
  }
  std::vector<MomentPair> pairs;
  for (const auto& [key, found] : each_of(by_key, input)) {
    if (found.mean && found.square &&
        same(checkpoint.shape(*found.mean), checkpoint.shape(*found.square)))
      pairs.push_back({key.first, key.second, *found.mean, *found.square});
  }
  return pairs;
}

}  // namespace shw
