#include "core/formats/complete.h"

#include "core/formats/dcp/dcp_formats.h"
#include "core/formats/dcp/megatron_new.h"

namespace shw {
namespace {

struct CompletionRow {
  const Format* format;
  Result<SmallFiles> (*complete)(Outputs& outputs);
  bool (*is_added)(std::string_view fqn);
};

constexpr CompletionRow kCompletions[] = {
    {&kMegatronFormat, complete_megatron, is_megatron_extra_state},
};

}  // namespace

Result<SmallFiles> complete_outputs(const Format& format, Outputs& outputs) {
  for (const CompletionRow& row : kCompletions) {
    if (row.format == &format) return row.complete(outputs);
  }
  return SmallFiles{};
}

bool may_be_added_by_writer(const Format& format, std::string_view fqn) {
  for (const CompletionRow& row : kCompletions) {
    if (row.format == &format) return row.is_added(fqn);
  }
  return false;
}

bool completes_optimizer(const Format& format) {
  return &format == &kMegatronFormat;
}

}  // namespace shw
