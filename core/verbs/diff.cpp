#include "core/verbs/diff.h"

#include <array>

#include "core/base/destroy_in_background.h"
#include "core/base/parallel.h"
#include "core/formats/open.h"
#include "core/verbs/computed_path.h"
#include "core/verbs/mapped_reference.h"
#include "core/verbs/names/filter.h"

namespace shw::verbs {

namespace {

// Names that the filter matches in either checkpoint: a term may match one of two tensors with the
// same name.
Result<ComparedNames> requested_names(const Checkpoint& a, const Checkpoint& b,
                                      const std::string& only, Progress* progress) {
  ComparedNames names;
  auto unknown_in_a = check_filter(a, only);
  if (!unknown_in_a) SHW_CHECK(check_filter(b, only));
  for (const Checkpoint* checkpoint : {&a, &b}) {
    SHW_TRY(const auto tensors, filter_tensors(*checkpoint, nullptr, only, progress));
    for (std::uint32_t tensor : tensors) names.emplace(checkpoint->fqn(TensorId{tensor}));
    for (std::uint32_t object : filter_objects(*checkpoint, only))
      names.insert(checkpoint->objects()[object].fqn);
  }
  return names;
}

// Compares the two checkpoints of `out`.
Status compare_opened(const DiffOptions& options, Progress* progress, ComparedCheckpoints& out) {
  CompareOptions compare = options.compare;
  ComparedNames names;
  if (!options.only.empty()) {
    SHW_TRY(names, requested_names(*out.a, *out.b, options.only, progress));
    compare.only = &names;
    out.is_empty = names.empty();
    if (out.is_empty) return {};
  }
  if (options.only.empty()) {
    SHW_TRY(auto mapped,
            difference_through_map(out.a, out.b, options.mapping, compare.data, progress));
    if (mapped && compare.tolerance)
      return fail(ErrorKind::kUnsupported,
                  "--atol and --rtol do not apply between two programs with different names", {},
                  "convert one of them with --to hf, and compare the result");
    if (mapped) {
      out.difference = std::move(*mapped);
      return {};
    }
  }
  SHW_TRY(out.difference, compare_checkpoints(*out.a, *out.b, compare, progress));
  return {};
}

}  // namespace

Result<ComparedCheckpoints> diff_opened(std::shared_ptr<const Checkpoint> a,
                                        std::shared_ptr<const Checkpoint> b,
                                        const DiffOptions& options, Progress* progress) {
  ComparedCheckpoints out;
  out.a = std::move(a);
  out.b = std::move(b);
  SHW_CHECK(compare_opened(options, progress, out));
  return out;
}

Result<ComparedCheckpoints> diff(const std::string& a, const std::string& b,
                                 const DiffOptions& options, Progress* progress) {
  ComparedCheckpoints out;
  const std::array paths{&a, &b};
  const std::array opened{&out.a, &out.b};
  auto both = parallel_for(paths.size(), [&](std::size_t i) -> Status {
    SHW_TRY(*opened[i], open_requested_for_comparison(*paths[i], progress));
    return {};
  });
  Status compared = both ? compare_opened(options, progress, out) : std::move(both);
  if (compared) return out;
  if (is_cancelled(progress)) destroy_in_background(std::move(out));
  return tl::unexpected<Error>(std::move(compared).error());
}

}  // namespace shw::verbs
