#include "core/verbs/ui_report.h"

#include <fmt/core.h>

#include "core/base/words.h"
#include "core/io/place.h"
#include "core/io/publish.h"
#include "core/report/report.h"
#include "core/verbs/command_line.h"
#include "core/verbs/output_place.h"
#include "core/verbs/plan_file.h"

namespace shw::verbs {
namespace {

constexpr int kMostNames = 10'000;

Result<std::string> free_name(const Store& store, const std::string& folder,
                              const std::string& stem) {
  for (int n = 1; n <= kMostNames; ++n) {
    std::string path = fmt::format("{}/{}-report{}.html", folder == "/" ? "" : folder, stem,
                                   n == 1 ? "" : fmt::format("-{}", n));
    if (!store.exists(path)) return path;
  }
  return fail(ErrorKind::kUsage, "ten thousand reports lie here already", {folder});
}

Result<std::string> place_for(const Store& store, const UiReport& wanted) {
  SHW_TRY(std::string checkpoint, store.resolved(wanted.options.checkpoint));
  std::string stem = checkpoint.substr(checkpoint.rfind('/') + 1);
  if (stem.empty()) stem = "checkpoint";
  if (wanted.path.empty()) return free_name(store, parent_of(checkpoint), stem);
  std::string path = without_trailing_slashes(expanded_path(wanted.path));
  if (!store.exists(path)) return path;
  if (store.read_folder(path)) return free_name(store, path, stem);
  return fail(ErrorKind::kUsage, "there is a file of this name, and it is left as it is", {path},
              "Name another file, or a folder: the report gets a free name in it.");
}

}  // namespace

Result<WrittenReport> write_ui_report(Store& store, const UiReport& wanted) {
  SHW_TRY(std::string path, place_for(store, wanted));
  SHW_CHECK(check_output_place(wanted.opened, wanted.options, path));
  std::string commands = command_line("check", wanted.options);
  if (wanted.plan != nullptr && !wanted.plan->empty())
    commands += "\n" + command_line("repair", wanted.options);
  ReportInput input{*wanted.opened.checkpoint, wanted.found, wanted.plan, wanted.found.spec.get(),
                    commands};
  input.looked_at = wanted.looked_at;
  std::string text = report_html(input);
  // Written under a temporary name and published only if the name is still free.
  TempFile half_made(path);
  SHW_TRY(auto folder, store.edit_folder(parent_of(path)));
  SHW_CHECK(write_text(*folder, half_made.name(), text));
  SHW_CHECK(half_made.publish());
  return WrittenReport{path, text.size()};
}

}  // namespace shw::verbs
