#include <fmt/core.h>

#include <set>

#include "core/transform/steps.h"

namespace shw {
namespace {

// Two entries of one name would be one entry for whoever loads them.
Status check_names_differ(const Arrangement& all) {
  std::set<std::string_view> names;
  auto is_new = [&](const std::string& fqn) -> Status {
    if (fqn.empty()) return fail(ErrorKind::kUsage, "an entry needs a name");
    if (names.insert(fqn).second) return {};
    return fail(ErrorKind::kUsage, "two entries would have this name",
                Place{.file = {}, .tensor = fqn});
  };
  for (const ArrangedEntry& entry : all.tensors) SHW_CHECK(is_new(entry.fqn));
  for (const ArrangedObject& object : all.objects) SHW_CHECK(is_new(object.fqn));
  return {};
}

}  // namespace

Result<Arrangement> take_steps(Arrangement all, const std::vector<Step>& steps,
                               Progress* progress) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (is_cancelled(progress)) return cancelled_error();
    Status taken = std::visit([&](const auto& step) { return take(all, step); }, steps[i]);
    if (taken) taken = check_names_differ(all);
    if (taken) continue;
    Error error = std::move(taken).error();
    error.message = fmt::format("step {} ({}): {}", i + 1, name(steps[i]), error.message);
    return tl::unexpected<Error>(std::move(error));
  }
  return all;
}

}  // namespace shw
