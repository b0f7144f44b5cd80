#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "core/transform/named_entries.h"
#include "core/transform/steps.h"

namespace shw {
namespace {

// One that is saved without a name, as torch may, is found by nobody who asks for a name.
bool has_nameless(const Checkpoint& source) {
  const auto objects = source.objects();
  return source.find("") || std::any_of(objects.begin(), objects.end(),
                                        [](const ObjectRow& row) { return row.fqn.empty(); });
}

// Two entries of one name would be one entry for whoever loads them.
Status check_names_differ(Arrangement& all, bool may_be_empty) {
  const EntryNames& known = names_of(all);
  if (known.all_differ() && (may_be_empty || !known.has(""))) return {};
  in_order(all);  // which one it is, as they stand
  std::set<std::string_view> names;
  auto is_new = [&](const std::string& fqn) -> Status {
    if (fqn.empty() && !may_be_empty) return fail(ErrorKind::kUsage, "an entry needs a name");
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
  const bool may_be_empty = has_nameless(all.source());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (is_cancelled(progress)) return cancelled_error();
    all.step = i + 1;
    Status taken = std::visit([&](const auto& step) { return take(all, step); }, steps[i]);
    if (taken) taken = check_names_differ(all, may_be_empty);
    if (taken) continue;
    Error error = std::move(taken).error();
    error.message = fmt::format("step {} ({}): {}", i + 1, name(steps[i]), error.message);
    return tl::unexpected<Error>(std::move(error));
  }
  in_order(all);
  all.names.reset();
  return all;
}

}  // namespace shw
