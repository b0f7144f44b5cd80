#include "core/repair/run/recheck_inputs.h"

#include <algorithm>

#include "core/repair/proof/certify.h"
#include "core/repair/proof/verify.h"

namespace shw {
namespace {

// Finds a file whose ctime changed; make_folder notices other sizes and mtimes.
const WatchedFile* touched_file(const TouchCheck& check) {
  auto is_touched = [&](const WatchedFile& file) {
    const Entry now = check.inputs[file.input]->directory()->stat(file.entry.path);
    return file.entry.changed_ns != 0 && now.changed_ns != file.entry.changed_ns;
  };
  auto found = std::find_if(check.watched.begin(), check.watched.end(), is_touched);
  return found == check.watched.end() ? nullptr : &*found;
}

}  // namespace

Status recheck_changed_inputs(const TouchCheck& check, const WrittenFolder& written,
                              Progress* progress) {
  const WatchedFile* touched = touched_file(check);
  SHW_TRY(bool any, run_on_rank0_and_broadcast(
                        written.team, [&]() -> Result<bool> { return touched != nullptr; }));
  if (!any) return {};
  SHW_TRY(VerifyReport report,
          verify_repair(written.result, progress, check.source, written.team, check.memory));
  if (report.outcome == VerifyReport::Outcome::kProved) return {};
  const std::string file = touched == nullptr ? std::string() : touched->entry.path;
  return fail(ErrorKind::kIo,
              "changed while it was being read, behind its size and time: " +
                  (report.reasons.empty() ? std::string() : report.reasons.front()),
              {file}, "wait until nothing writes to the checkpoint, then do this again");
}

}  // namespace shw
