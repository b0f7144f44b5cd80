#include "core/verbs/diff.h"

#include <array>

#include "core/base/leave_behind.h"
#include "core/base/parallel.h"
#include "core/formats/open.h"

namespace shw::verbs {
namespace {

// Files inside of a checkpoint are named from its folder, and of two folders nobody knows which.
Error inside(Error error, const std::string& folder) {
  std::string& file = error.place.file;
  const std::string inside_of = folder + (folder.ends_with('/') ? "" : "/");
  // Of "run", a file "run.safetensors" lies inside.
  bool as_typed =
      file.empty() || file.front() == '/' || file == folder || file.starts_with(inside_of);
  // A file that stands for its folder was typed itself.
  if (!as_typed && folder.ends_with("/" + file))
    file = folder;
  else if (!as_typed)
    file = inside_of + file;
  return error;
}

}  // namespace

Result<ComparedCheckpoints> diff(const std::string& a, const std::string& b,
                                 const CompareOptions& options, Progress* progress) {
  ComparedCheckpoints out;
  const std::array paths{&a, &b};
  const std::array opened{&out.a, &out.b};
  auto both = each_in_parallel(paths.size(), [&](std::size_t i) -> Status {
    auto checkpoint = open_checkpoint(*paths[i], progress);
    if (!checkpoint) return tl::unexpected<Error>(inside(checkpoint.error(), *paths[i]));
    *opened[i] = std::move(*checkpoint);
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
