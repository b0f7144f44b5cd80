#include "app/cli/verbs.h"
#include "core/report/report.h"

namespace shw::cli {

int run_info(Context& context) {
  auto checkpoint = open(context);
  if (!checkpoint) return fail_with(context, checkpoint.error());
  print_answer(context, context.options.json ? info_to_json(**checkpoint)
                                             : info_to_text(**checkpoint, style_of(context)));
  return kClean;
}

}  // namespace shw::cli
