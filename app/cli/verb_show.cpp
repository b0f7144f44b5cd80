#include "app/cli/verbs.h"
#include "core/report/report.h"
#include "core/verbs/choose_tensors.h"

namespace shw::cli {

int run_show(Context& context) {
  const Options& options = context.options;
  auto checkpoint = open(context);
  if (!checkpoint) return fail_with(context, checkpoint.error());
  auto tensor = find_one_tensor(**checkpoint, options.subject);
  if (!tensor) return fail_with(context, tensor.error());
  std::optional<TensorValues> values;
  if (options.values) {
    auto read = read_first_elements(**checkpoint, *tensor, options.limit);
    if (!read) return fail_with(context, read.error());
    values = std::move(*read);
  }
  const TensorValues* shown = values ? &*values : nullptr;
  if (options.json) {
    context.terminal.out_line(tensor_to_json(**checkpoint, *tensor, shown, options.limit));
    return kClean;
  }
  context.terminal.out(
      tensor_to_text(**checkpoint, *tensor, shown, options.limit, style_of(context)));
  if (shown != nullptr && shown->uncovered > 0) {
    context.terminal.say(plural(static_cast<std::uint64_t>(shown->uncovered), "element") +
                         " of this tensor are in no tile; they are shown as 0");
  }
  return kClean;
}

}  // namespace shw::cli
