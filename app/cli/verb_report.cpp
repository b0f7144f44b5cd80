#include "app/cli/verbs.h"
#include "core/io/place.h"
#include "core/io/publish.h"
#include "core/io/store.h"
#include "core/report/answers.h"
#include "core/report/report.h"
#include "core/verbs/check_context.h"
#include "core/verbs/output_place.h"

namespace shw::cli {
namespace {

// Through a temporary name: a report that breaks off leaves the old one as it was.
Status write_file(const std::string& path, std::string_view text) {
  HalfMadeFile half_made(path);
  SHW_TRY(auto folder, posix_store().edit_folder(parent_of(path)));
  const std::string name = half_made.path().substr(half_made.path().rfind('/') + 1);
  Status written = write_text(*folder, name, text);
  if (written) written = half_made.replace();
  // What it was called on the way is nothing to anybody.
  if (!written) written.error().place.file = path;
  return written;
}

// Where bytes may be read, and for the forms that show them.
bool shows_statistics(verbs::PageFormat format) {
  return format == verbs::PageFormat::kHtml || format == verbs::PageFormat::kMarkdown ||
         format == verbs::PageFormat::kHdf5;
}

Result<std::vector<TensorStatistics>> shown_statistics(Context& context,
                                                       const verbs::Opened& opened, Depth depth,
                                                       verbs::PageFormat format,
                                                       const CountedChunks& counted) {
  if (!shows_statistics(format) || depth != Depth::kData) return std::vector<TensorStatistics>{};
  ProgressLine line(context.terminal, context.progress);
  return verbs::stats(opened, {}, &context.progress, nullptr, &counted);
}

// Tables go into a file only.
int run_tables(Context& context, const verbs::Opened& opened, const CheckReport& found,
               const CountedChunks& counted) {
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
    return verbs::report_tables(opened, options, found, &counted, &context.progress);
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
  const bool is_answer = options.json && options.out.empty();
  const auto format =
      verbs::page_format_of_word(options.format)
          .value_or(is_answer ? verbs::PageFormat::kJson : verbs::page_format(options.out));
  auto asked = verbs::read_asked(options.baseline, options.policy);
  if (!asked) return fail_with(context, asked.error());
  // Markdown under that name would open in nothing.
  if (options.format.empty() && options.out.ends_with(".pdf"))
    return fail_with(context, Error{ErrorKind::kUsage,
                                    "a report is never a PDF",
                                    {options.out},
                                    "Name it .html, and print that from a browser."});
  auto opened = open_all(context);
  if (!opened) return fail_with(context, opened.error());
  if (!options.out.empty()) {
    if (auto apart = verbs::check_output_place(*opened, options, options.out); !apart)
      return fail_with(context, apart.error());
  }
  // One pass over the bytes finds what is wrong with them and what they add up to.
  CountedChunks counted(*opened->checkpoint);
  auto found = check_now(context, *opened, shows_statistics(format) ? &counted : nullptr);
  if (!found) return fail_with(context, found.error());
  if (format == verbs::PageFormat::kHdf5) return run_tables(context, *opened, *found, counted);
  auto plan = verbs::plan(*opened, *found, options.fill, &context.progress);
  // Without a plan the page says that nothing can be mended; what was said about fills is answered.
  if (!plan && !options.fill.empty()) return fail_with(context, plan.error());

  auto judged = verbs::judge(*asked, *opened, found->depth == Depth::kData, &context.progress);
  if (!judged) return fail_with(context, judged.error());
  auto statistics = shown_statistics(context, *opened, found->depth, format, counted);
  if (!statistics) return fail_with(context, statistics.error());
  std::string text = verbs::report(*opened, options, *found, plan ? &*plan : nullptr, format,
                                   asked->context(options.checkpoint), *statistics);
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
