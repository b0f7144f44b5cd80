#include <algorithm>

#include "app/cli/verbs.h"
#include "core/base/natural_order.h"
#include "core/report/report.h"
#include "core/verbs/filter.h"

namespace shw::cli {
namespace {

// finding:RULE in the words needs a check first.
Result<std::vector<std::uint32_t>> chosen(Context& context, const verbs::Opened& opened) {
  const Checkpoint& checkpoint = *opened.checkpoint;
  const std::string& words = context.options.subject;
  SHW_CHECK(check_filter(checkpoint, words));
  std::optional<CheckReport> report;
  if (words.find("finding:") != words.npos) {
    SHW_TRY(report, check_now(context, opened));
  }
  const CheckReport* findings = report ? &*report : nullptr;
  SHW_TRY(auto order, filter_tensors(checkpoint, findings, words, &context.progress));
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return natural_less(checkpoint.fqn(TensorId{a}), checkpoint.fqn(TensorId{b}));
  });
  return order;
}

std::string nothing_listed(const Checkpoint& checkpoint, const std::string& words) {
  if (checkpoint.tensor_count() == 0) return "There is no tensor in this checkpoint.";
  return "No tensor fits \"" + printable(words) + "\": of " +
         plural(checkpoint.tensor_count(), "tensor") + ", none has all of it.";
}

}  // namespace

int run_list(Context& context) {
  auto opened = open_all(context);
  if (!opened) return fail_with(context, opened.error());
  auto order = chosen(context, *opened);
  if (!order) return fail_with(context, order.error());
  const Checkpoint& checkpoint = *opened->checkpoint;
  if (context.options.json) {
    auto objects = filter_objects(checkpoint, context.options.subject);
    context.terminal.out_line(list_to_json(checkpoint, *order, objects));
  } else {
    context.terminal.out(list_to_text(checkpoint, *order, style_of(context)));
  }
  if (order->empty()) context.terminal.say(nothing_listed(checkpoint, context.options.subject));
  return kClean;
}

}  // namespace shw::cli
