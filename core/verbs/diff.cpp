#include "core/verbs/diff.h"

#include <array>

#include "core/base/leave_behind.h"
#include "core/base/parallel.h"
#include "core/formats/open.h"

namespace shw::verbs {

Result<ComparedCheckpoints> diff(const std::string& a, const std::string& b,
                                 const CompareOptions& options, Progress* progress) {
  ComparedCheckpoints out;
  const std::array paths{&a, &b};
  const std::array opened{&out.a, &out.b};
  auto both = each_in_parallel(paths.size(), [&](std::size_t i) -> Status {
    SHW_TRY(*opened[i], open_beside(*paths[i], progress));
    return {};
  });
  auto difference =
      both ? compare_checkpoints(*out.a, *out.b, options, progress)
           : Result<CheckpointDifference>(tl::unexpected<Error>(std::move(both).error()));
  if (difference) {
    out.difference = std::move(*difference);
    return out;
  }
  if (is_cancelled(progress)) leave_behind(std::move(out));
  return tl::unexpected<Error>(std::move(difference).error());
}

}  // namespace shw::verbs
