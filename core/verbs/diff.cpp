#include "core/verbs/diff.h"

#include <array>

#include "core/base/destroy_in_background.h"
#include "core/base/parallel.h"
#include "core/formats/open.h"

namespace shw::verbs {

Result<ComparedCheckpoints> diff(const std::string& a, const std::string& b,
                                 const CompareOptions& options, Progress* progress) {
  ComparedCheckpoints out;
  const std::array paths{&a, &b};
  const std::array opened{&out.a, &out.b};
  auto both = parallel_for(paths.size(), [&](std::size_t i) -> Status {
    SHW_TRY(*opened[i], open_to_compare(*paths[i], progress));
    return {};
  });
  auto difference =
      both ? compare_checkpoints(*out.a, *out.b, options, progress)
           : Result<CheckpointDifference>(tl::unexpected<Error>(std::move(both).error()));
  if (difference) {
    out.difference = std::move(*difference);
    return out;
  }
  if (is_cancelled(progress)) destroy_in_background(std::move(out));
  return tl::unexpected<Error>(std::move(difference).error());
}

}  // namespace shw::verbs
