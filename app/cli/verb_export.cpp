// export-hdf5: a checkpoint as an HDF5 file that maps it.
#include "app/cli/verbs.h"
#include "core/report/export_answer.h"
#include "core/verbs/export_hdf5.h"

namespace shw::cli {

int run_export_hdf5(Context& context) {
  const Options& options = context.options;
  auto opened = open_all(context);
  if (!opened) return fail_with(context, opened.error());
  ExportOptions wanted;
  wanted.paths = options.paths == "relative" ? Hdf5Paths::kRelative : Hdf5Paths::kAbsolute;
  wanted.copy = options.copy;
  auto exported = [&] {
    ProgressLine line(context.terminal, context.progress);
    return verbs::export_hdf5(*opened, options, wanted, &context.progress);
  }();
  if (!exported) return fail_with(context, exported.error());
  if (options.json) {
    print_answer(context, exported_to_json(*exported, wanted.paths));
  } else {
    context.terminal.out(exported_to_text(*exported, wanted.paths, style_of(context)));
    context.terminal.say(
        "Open it read-only: h5py.File(..., \"r\"). Writing in mode r+ would change the "
        "checkpoint.");
  }
  return exported->is_whole() ? kClean : kUndecided;
}

}  // namespace shw::cli
