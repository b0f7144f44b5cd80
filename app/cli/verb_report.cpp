#include <filesystem>

#include "app/cli/verbs.h"
#include "core/io/store.h"
#include "core/report/answers.h"
#include "core/report/report.h"
#include "core/verbs/check_context.h"

namespace shw::cli {
namespace {

// Through a temporary name: a report that breaks off leaves the old one as it was.
Status write_file(const std::string& path, std::string_view text) {
  std::filesystem::path target(path);
  std::string folder = target.has_parent_path() ? target.parent_path().string() : ".";
  std::string final_name = target.filename().string();
  std::string temporary = "." + final_name + ".shardwright-partial";
  SHW_TRY(auto directory, posix_store().edit_folder(folder));
  std::error_code ignored;
  std::filesystem::remove(std::filesystem::path(folder) / temporary, ignored);
  SHW_TRY(auto sink, directory->create(temporary));
  SHW_CHECK(sink->write(std::as_bytes(std::span(text))));
  SHW_CHECK(sink->finish());
  return directory->rename(temporary, final_name);
}

// Tables go into a file only.
int run_tables(Context& context, const verbs::Opened& opened, const CheckReport& found) {
  const Options& options = context.options;
  if (options.out.empty())
    return fail_with(context,
                     Error{ErrorKind::kUsage, "HDF5 tables need a file", {}, "--out FILE.h5"});
  if (!options.baseline.empty() || !options.policy.empty())
    return fail_with(context, Error{ErrorKind::kUsage,
                                    "tables hold what was found, whatever is known or required",
                                    {},
                                    "Leave out --baseline and --policy."});
  auto bytes = [&] {
    ProgressLine line(context.terminal, context.progress);
    return verbs::report_tables(opened, options, found, &context.progress);
  }();
  if (!bytes) return fail_with(context, bytes.error());
  if (options.json) {
    context.terminal.out_line(written_to_json(options.out, *bytes));
  } else {
    context.terminal.out_line(printable(options.out));
    context.terminal.say(human_bytes(*bytes) + ", tables for h5py and pandas");
  }
  return kClean;
}

}  // namespace

int run_report(Context& context) {
  const Options& options = context.options;
  const auto format =
      verbs::page_format_of_word(options.format).value_or(verbs::page_format(options.out));
  auto asked = verbs::read_asked(options.baseline, options.policy);
  if (!asked) return fail_with(context, asked.error());
  auto opened = open_all(context);
  if (!opened) return fail_with(context, opened.error());
  auto found = check_now(context, *opened);
  if (!found) return fail_with(context, found.error());
  if (format == verbs::PageFormat::kHdf5) return run_tables(context, *opened, *found);
  auto plan = verbs::plan(*opened, *found, options.fill, &context.progress);
  // Without a plan the page says that nothing can be mended; what was said about fills is answered.
  if (!plan && !options.fill.empty()) return fail_with(context, plan.error());

  auto judged = verbs::judge(*asked, *opened, found->depth == Depth::kData, &context.progress);
  if (!judged) return fail_with(context, judged.error());
  std::string text = verbs::report(*opened, options, *found, plan ? &*plan : nullptr, format,
                                   asked->context(options.checkpoint));
  if (options.out.empty()) {
    context.terminal.out(text);
    return kClean;
  }
  if (auto written = write_file(options.out, text); !written)
    return fail_with(context, written.error());
  if (options.json) {
    context.terminal.out_line(written_to_json(options.out, text.size()));
  } else {
    context.terminal.out_line(printable(options.out));
    context.terminal.say(human_bytes(text.size()) + (format == verbs::PageFormat::kHtml
                                                         ? ", one page without outside references"
                                                         : ""));
  }
  return kClean;
}

}  // namespace shw::cli
