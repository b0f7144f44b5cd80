#include <filesystem>

#include "app/cli/verbs.h"
#include "app/cli/words.h"
#include "core/io/sink.h"
#include "core/report/answers.h"
#include "core/report/report.h"

namespace shw::cli {
namespace {

bool wants_html(const std::string& path) {
  return path.ends_with(".html") || path.ends_with(".htm");
}

// Through a temporary name: a report that breaks off leaves the old one as it was.
Status write_file(const std::string& path, std::string_view text) {
  std::filesystem::path target(path);
  std::string folder = target.has_parent_path() ? target.parent_path().string() : ".";
  std::string final_name = target.filename().string();
  std::string temporary = "." + final_name + ".shardwright-partial";
  SHW_TRY(auto directory, open_writable_directory(folder));
  std::error_code ignored;
  std::filesystem::remove(std::filesystem::path(folder) / temporary, ignored);
  SHW_TRY(auto sink, directory->create(temporary));
  SHW_CHECK(sink->write(std::as_bytes(std::span(text))));
  SHW_CHECK(sink->finish());
  return directory->rename(temporary, final_name);
}

std::string commands(const Options& options, const Plan* plan) {
  std::string text = check_command(options);
  if (plan != nullptr && !plan->empty()) text += "\n" + repair_command(options);
  return text;
}

}  // namespace

int run_report(Context& context) {
  const Options& options = context.options;
  auto check_with = check_options(context);
  if (!check_with) return fail_with(context, check_with.error());
  auto checkpoint = open(context);
  if (!checkpoint) return fail_with(context, checkpoint.error());
  auto found = check_now(context, **checkpoint, *check_with);
  if (!found) return fail_with(context, found.error());
  PlanOptions wanted{check_with->mesh, found->spec};
  if (auto filled = choose_fill(options.fill, wanted, &context.progress); !filled)
    return fail_with(context, filled.error());
  auto plan = make_plan(**checkpoint, *found, wanted);

  ReportInput input{**checkpoint, *found, plan ? &*plan : nullptr, found->spec.get(),
                    commands(options, plan ? &*plan : nullptr)};
  std::string text = wants_html(options.out) ? report_html(input) : report_markdown(input);
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
    context.terminal.say(human_bytes(text.size()) +
                         (wants_html(options.out) ? ", one page without outside references" : ""));
  }
  return kClean;
}

}  // namespace shw::cli
