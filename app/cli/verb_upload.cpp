#include "app/cli/verbs.h"
#include "core/base/byte_count.h"
#include "core/report/listing.h"
#include "core/report/report.h"

namespace shw::cli {

int run_upload(Context& context) {
  const Options& options = context.options;
  auto sent = upload_or_resume_folder(context, options.checkpoint, options.upload);
  if (!sent) return fail_with(context, sent.error());
  if (context.options.json) {
    print_answer(context, upload_to_json(*sent));
    return kClean;
  }
  if (sent->kept != 0)
    context.terminal.say("Resumed an earlier upload: " + plural(sent->kept, "file") +
                         " had already been sent.");
  context.terminal.out_line("sent to " + printable(sent->to) + ": " + plural(sent->files, "file") +
                            ", " + human_bytes(sent->bytes));
  return kClean;
}

}  // namespace shw::cli
