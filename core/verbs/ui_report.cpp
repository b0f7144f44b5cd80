#include "core/verbs/ui_report.h"

#include "core/io/path_text.h"
#include "core/io/publish.h"
#include "core/report/report.h"
#include "core/verbs/command_line.h"
#include "core/verbs/new_file.h"
#include "core/verbs/output_place.h"

namespace shw::verbs {

Result<WrittenReport> write_new_text(Store& store, const std::string& path,
                                     const std::string& text) {
  TempFile half_made(path);
  SHW_TRY(auto folder, store.edit_folder(parent_of(path)));
  SHW_CHECK(write_text(*folder, half_made.name(), text));
  SHW_CHECK(half_made.publish());
  return WrittenReport{path, text.size()};
}

Result<WrittenReport> write_ui_report(Store& store, const UiReport& wanted) {
  SHW_TRY(std::string path,
          free_path(store,
                    place_request(NewFile::kReport, wanted.options.checkpoint, {}, wanted.path)));
  SHW_CHECK(check_output_place(wanted.opened, wanted.options, path));
  std::string commands = command_line("check", wanted.options);
  const bool repairs = wanted.plan != nullptr && wanted.plan->repairs();
  if (repairs) commands += "\n" + repair_command_line(*wanted.opened.checkpoint, wanted.options);
  ReportInput input{*wanted.opened.checkpoint, wanted.found, repairs ? wanted.plan : nullptr,
                    wanted.found.spec.get(), commands};
  input.looked_at = wanted.looked_at;
  input.views = wanted.views;
  return write_new_text(store, path, report_html(input));
}

}  // namespace shw::verbs
