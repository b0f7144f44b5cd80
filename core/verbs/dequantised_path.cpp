#include "core/verbs/dequantised_path.h"

#include "core/facts/values/dequantised.h"
#include "core/formats/open.h"

namespace shw::verbs {
namespace {

template <class Open>
Result<std::shared_ptr<const Checkpoint>> open_by(Open open, const std::string& path,
                                                  Progress* progress) {
  if (!path.ends_with(kDequantisedPath)) return open(path, progress);
  SHW_TRY(auto stored, open(path.substr(0, path.size() - kDequantisedPath.size()), progress));
  return dequantised(std::move(stored), progress);
}

}  // namespace

Result<std::shared_ptr<const Checkpoint>> open_as_asked(const std::string& path,
                                                        Progress* progress) {
  auto open = [](const std::string& asked, Progress* told) { return open_checkpoint(asked, told); };
  return open_by(open, path, progress);
}

Result<std::shared_ptr<const Checkpoint>> open_as_asked_to_compare(const std::string& path,
                                                                   Progress* progress) {
  return open_by(open_to_compare, path, progress);
}

}  // namespace shw::verbs
