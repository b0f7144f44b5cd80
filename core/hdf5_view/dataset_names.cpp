#include "core/hdf5_view/dataset_names.h"

namespace shw {
namespace {

constexpr std::string_view kNullByte{"\0", 1};

// True if the name has a part "" or ".", which HDF5 ignores between slashes.
bool has_ignored_name_parts(std::string_view fqn) {
  while (true) {
    std::size_t slash = fqn.find('/');
    std::string_view part = fqn.substr(0, slash);
    if (part.empty() || part == ".") return true;
    if (slash == std::string_view::npos) return false;
    fqn.remove_prefix(slash + 1);
  }
}

}  // namespace

DatasetNames::DatasetNames(const Checkpoint& checkpoint) {
  bool any_slash = false;
  for (std::uint32_t i = 0; i < checkpoint.tensor_count() && !any_slash; ++i)
    any_slash = checkpoint.fqn(TensorId{i}).find('/') != std::string_view::npos;
  for (std::uint32_t i = 0; any_slash && i < checkpoint.tensor_count(); ++i)
    fqns_.insert(checkpoint.fqn(TensorId{i}));
}

std::string DatasetNames::refusal(std::string_view fqn) const {
  if (fqn.find(kNullByte) != std::string_view::npos)
    return "its name holds a zero byte, where HDF5 ends a name";
  if (has_ignored_name_parts(fqn)) return "HDF5 has no dataset of such a name";
  for (std::size_t slash = fqn.find('/'); slash != std::string_view::npos;
       slash = fqn.find('/', slash + 1)) {
    if (fqns_.contains(fqn.substr(0, slash)))
      return "its name is below that of another tensor, " + std::string(fqn.substr(0, slash));
  }
  return {};
}

}  // namespace shw
