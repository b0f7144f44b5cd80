#include <algorithm>
#include <csignal>

#include "app/cli/verbs.h"
#include "core/io/output_file.h"
#include "core/io/path_text.h"
#include "core/io/store.h"
#include "core/report/answers.h"
#include "core/report/report.h"
#include "core/verbs/check_context.h"
#include "core/verbs/ignored_rules.h"
#include "core/verbs/output_place.h"
#include "core/verbs/view_file.h"

namespace shw::cli {
namespace {

// True for CI output of an earlier run of this program: it must not be taken for this run's.
bool is_own_ci_output(const std::string& path) {
  constexpr std::uint64_t kBeginning = 4096;
  auto file = open_file(path, path);
  if (!file) return false;
  auto bytes = read_bytes(**file, 0, std::min((*file)->size(), kBeginning));
  if (!bytes) return false;
  const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  const bool begins =
      text.empty() || text.starts_with("<?xml") || text.starts_with("{") || text.starts_with("::");
  return begins &&
         (text.empty() || text.starts_with("::") || text.find("shardwright") != text.npos);
}

// Replaces the CI output of an earlier run, or writes a new file; never replaces other files.
void write_failed_ci_output(const Options& options, const std::string& text) {
  const auto target = output_target(options.out);
  if (!target || !verbs::check_output_apart(options.checkpoint, target->path)) return;
  const bool is_there = posix_store().exists(target->path);
  if (!target->is_special && is_there && !is_own_ci_output(target->path)) return;
  if (write_output_file(options.out, text) || target->is_special || !is_there) return;
  // No space to write it: deletes the old output, which may claim success.
  const std::string name = target->path.substr(target->path.rfind('/') + 1);
  if (auto folder = posix_store().edit_folder(parent_of(target->path)); folder)
    static_cast<void>((*folder)->remove(name));
}

verbs::PageFormat format_of(const Options& options) {
  const bool is_answer = options.json && options.out.empty();
  return verbs::page_format_of_word(options.format)
      .value_or(is_answer ? verbs::PageFormat::kJson : verbs::page_format(options.out));
}

// True for formats that show statistics, if bytes may be read.
bool format_shows_statistics(verbs::PageFormat format) {
  return format == verbs::PageFormat::kHtml || format == verbs::PageFormat::kMarkdown ||
         format == verbs::PageFormat::kHdf5;
}

Result<std::vector<TensorStatistics>> shown_statistics(Context& context,
                                                       const verbs::Opened& opened, Depth depth,
                                                       verbs::PageFormat format,
                                                       const CountedChunks& counted) {
  if (!format_shows_statistics(format) || depth != Depth::kData)
    return std::vector<TensorStatistics>{};
  ProgressLine line(context.terminal, context.progress);
  return verbs::stats(opened, {}, &context.progress, nullptr, &counted);
}

// Writes tables, always into a file.
int run_tables(Context& context, const verbs::Opened& opened, const CheckReport& found,
               const CountedChunks& counted, const verbs::CheckRequest& asked) {
  const Options& options = context.options;
  if (options.out.empty())
    return fail_report(
        context,
        Error{ErrorKind::kUsage, "HDF5 tables need an output file (--out)", {}, "--out FILE.h5"});
  if (!options.baseline.empty() || !options.policy.empty())
    return fail_report(context, Error{ErrorKind::kUsage,
                                      "HDF5 tables hold all findings, without baseline and policy",
                                      {},
                                      "Remove --baseline and --policy."});
  auto bytes = [&] {
    ProgressLine line(context.terminal, context.progress);
    return verbs::report_tables(opened, options, found, &counted, &context.progress);
  }();
  if (!bytes) return fail_report(context, bytes.error());
  if (options.json) {
    print_answer(context, written_to_json(options.out, *bytes));
  } else {
    context.terminal.out_line(printable(options.out));
    context.terminal.say(human_bytes(*bytes) + ", tables for h5py and pandas");
  }
  return exit_code_of_check(found, asked, options.fail_on);
}

Result<std::vector<PageView>> requested_views(const Options& options, const verbs::Opened& opened,
                                              verbs::PageFormat format) {
  if (!options.views.empty() && format != verbs::PageFormat::kHtml)
    return fail(ErrorKind::kUsage, "--view needs an HTML report", {}, "Add --out FILE.html");
  return verbs::read_page_views(opened, options, options.views);
}

}  // namespace

int fail_report(Context& context, const Error& error) {
  const Options& options = context.options;
  std::string words = error_to_text(with_checkpoint_path(error, options));
  words.erase(words.find_last_not_of('\n') + 1);
  if (auto text = verbs::ci_error_report(options, format_of(options), words); text) {
    if (!options.out.empty())
      write_failed_ci_output(options, *text);
    else if (!options.json)
      context.terminal.out(*text);
  }
  const int signal = context.stopped_by == nullptr ? 0 : context.stopped_by->load();
  const bool is_stopped = error.kind == ErrorKind::kCancelled && signal != 0;
  return fail_with_code(context, error, is_stopped ? 128 + signal : exit_code(error.kind));
}

int run_report(Context& context) {
  const Options& options = context.options;
  const auto format = format_of(options);
  auto ignored = rules_to_ignore(options);
  if (!ignored) return fail_report(context, ignored.error());
  auto asked = verbs::read_check_request(options.baseline, options.policy);
  if (!asked) return fail_report(context, asked.error());
  // Nothing could open a Markdown file with that name.
  if (options.format.empty() && options.out.ends_with(".pdf"))
    return fail_report(context, Error{ErrorKind::kUsage,
                                      "a report cannot be a PDF",
                                      {options.out},
                                      "Name it .html, and print that from a browser."});
  auto opened = open_all(context);
  if (!opened) return fail_report(context, opened.error());
  if (!options.out.empty()) {
    if (auto apart = verbs::check_output_place(*opened, options, options.out); !apart)
      return fail_report(context, apart.error());
  }
  auto views = requested_views(options, *opened, format);
  if (!views) return fail_report(context, views.error());
  // One pass over the bytes serves the check and the statistics.
  CountedChunks counted(*opened->checkpoint);
  auto found = check_opened(context, *opened, format_shows_statistics(format) ? &counted : nullptr);
  if (!found) return fail_report(context, found.error());
  verbs::ignore_findings(*found, *ignored);
  if (format == verbs::PageFormat::kHdf5)
    return run_tables(context, *opened, *found, counted, *asked);
  auto plan = verbs::plan(*opened, *found, options.fill, &context.progress);
  // Without a plan the page states that nothing can be repaired; an invalid --fill is an error.
  if (!plan && !options.fill.empty()) return fail_report(context, plan.error());

  auto judged = verbs::judge(*asked, *opened, found->depth == Depth::kData, &context.progress);
  if (!judged) return fail_report(context, judged.error());
  auto statistics = shown_statistics(context, *opened, found->depth, format, counted);
  if (!statistics) return fail_report(context, statistics.error());
  std::string text = verbs::report(*opened, options, *found, plan ? &*plan : nullptr, format,
                                   asked->context(options.checkpoint), *statistics, *views);
  if (format == verbs::PageFormat::kJson) text = with_origin_of(context, std::move(text));
  // An incomplete page is not written.
  if (is_cancelled(&context.progress)) return fail_report(context, cancelled_error().value());
  if (options.out.empty()) {
    context.terminal.out(text);
    return exit_code_of_check(*found, *asked, options.fail_on);
  }
  if (auto written = write_output_file(options.out, text); !written)
    return fail_report(context, written.error());
  if (options.json) {
    print_answer(context, written_to_json(options.out, text.size()));
  } else {
    context.terminal.out_line(printable(options.out));
    context.terminal.say(human_bytes(text.size()) + (format == verbs::PageFormat::kHtml
                                                         ? ", one page without outside references"
                                                         : ""));
  }
  return exit_code_of_check(*found, *asked, options.fail_on);
}

}  // namespace shw::cli
