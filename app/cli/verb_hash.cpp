#include "app/cli/verbs.h"
#include "core/report/hash_report.h"
#include "core/verbs/mapped_view.h"

namespace shw::cli {

int run_hash(Context& context) {
  auto opened = open_all(context);
  if (!opened) return fail_with(context, opened.error());
  if (!context.options.hash_as_scheme.empty() || !context.options.mapping.map.empty()) {
    ProgressLine line(context.terminal, context.progress);
    auto view = verbs::mapped_view(opened->checkpoint, context.options.hash_as_scheme,
                                   context.options.mapping, &context.progress);
    if (!view) return fail_with(context, view.error());
    opened->checkpoint = std::move(view->checkpoint);
    for (const std::string& note : view->notes) context.terminal.say(printable(note));
  }
  auto hashed = [&] {
    ProgressLine line(context.terminal, context.progress);
    return verbs::hash(*opened, context.options.names, &context.progress, context.team);
  }();
  if (!hashed) return fail_with(context, hashed.error());
  if (context.options.json)
    print_answer(context, hashes_to_json(*hashed));
  else
    context.terminal.out(hashes_to_text(*hashed));
  return hashed->is_whole() ? kClean : kUndecided;
}

}  // namespace shw::cli
