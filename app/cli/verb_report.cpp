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

}  // namespace

int run_report(Context& context) {
  const Options& options = context.options;
  auto opened = open_all(context);
  if (!opened) return fail_with(context, opened.error());
  auto found = check_now(context, *opened);
  if (!found) return fail_with(context, found.error());
  auto plan = verbs::plan(*opened, *found, options.fill, &context.progress);
  // Without a plan the page says that nothing can be mended; what was said about fills is answered.
  if (!plan && !options.fill.empty()) return fail_with(context, plan.error());

  auto asked = verbs::ask(*opened, options.baseline, options.policy, found->depth == Depth::kData,
                          &context.progress);
  if (!asked) return fail_with(context, asked.error());
  auto format =
      verbs::page_format_of_word(options.format).value_or(verbs::page_format(options.out));
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
