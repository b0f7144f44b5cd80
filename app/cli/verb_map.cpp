#include "app/cli/verbs.h"
#include "core/report/map_text.h"
#include "core/spec/expected_tiling.h"

namespace shw::cli {

int run_map(Context& context) {
  auto checkpoint = open(context);
  if (!checkpoint) return fail_with(context, checkpoint.error());
  auto tensor = find_tensor(**checkpoint, context.options.subject);
  if (!tensor) return fail_with(context, tensor.error());
  auto spec = read_spec(context);
  if (!spec) return fail_with(context, spec.error());

  LaidTensor saved = saved_tiling(**checkpoint, *tensor);
  std::optional<LaidTensor> expected;
  if (*spec != nullptr) {
    if (const SpecEntry* entry = (*spec)->find(context.options.subject))
      expected = expected_tiling(*entry);
    else
      context.terminal.say("the spec does not name this tensor");
  }
  const LaidTensor* beside = expected ? &*expected : nullptr;
  FilledReport filled = filled_in(**checkpoint);
  const FilledTensor* lost = filled.find(context.options.subject);
  if (context.options.json) {
    context.terminal.out_line(map_to_json(context.options.subject, saved, beside, lost));
    return kClean;
  }
  context.terminal.out_line(map_to_text(context.options.subject, saved, beside, style_of(context)));
  context.terminal.out(filled_to_text(**checkpoint, *tensor, style_of(context)));
  return kClean;
}

}  // namespace shw::cli
