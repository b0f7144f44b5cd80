// FQNs as dataset paths, unchanged including dots.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "core/model/checkpoint.h"

namespace shw {

// Checks names of datasets. HDF5 creates groups for the parts before a '/', and a group cannot have
// the name of a dataset. The names are kept only if some contain a '/'.
class DatasetNames {
 public:
  explicit DatasetNames(const Checkpoint& checkpoint);
  // Why HDF5 cannot have a dataset of that name; empty if it can.
  std::string refusal(std::string_view fqn) const;

 private:
  std::set<std::string_view> fqns_;  // names of all tensors, if some contain a '/'
};

}  // namespace shw
