// FQNs as paths of datasets: as they are, dots kept.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "core/model/checkpoint.h"

namespace shw {

// A '/' in a name makes groups, and so no group may have the name of a dataset.
class DatasetNames {
 public:
  explicit DatasetNames(const Checkpoint& checkpoint);
  // Why HDF5 cannot hold a dataset of that name; empty where it can.
  std::string refusal(std::string_view fqn) const;

 private:
  std::set<std::string_view> fqns_;  // of tensors, where some have a '/'
};

}  // namespace shw
