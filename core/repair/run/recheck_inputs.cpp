#include "core/repair/run/recheck_inputs.h"

#include <algorithm>

#include "core/repair/proof/certify.h"
#include "core/repair/proof/verify.h"

namespace shw {
namespace {

// Finds a file whose ctime changed; make_folder notices other sizes and mtimes.
const WatchedFile* find_file_with_new_ctime(const InputChangeCheck& check) {
  auto is_touched = [&](const WatchedFile& file) {
    const Entry now = check.inputs[file.input]->directory()->stat(file.entry.path);
    return file.entry.changed_ns != 0 && now.changed_ns != file.entry.changed_ns;
  };
  auto found = std::find_if(check.watched.begin(), check.watched.end(), is_touched);
  return found == check.watched.end() ? nullptr : &*found;
}

}  // namespace

Status recheck_changed_inputs(const InputChangeCheck& check, const WrittenFolder& written,
                              Progress* progress) {
  const WatchedFile* touched = find_file_with_new_ctime(check);
  SHW_TRY(bool any,
          decide_on_rank0(written.team, [&]() -> Result<bool> { return touched != nullptr; }));
  if (!any) return {};
  SHW_TRY(VerifyReport report,
          verify_repair(written.result, progress, check.source, written.team, check.memory));
  if (report.outcome == VerifyReport::Outcome::kProved) return {};
  const std::string file = touched == nullptr ? std::string() : touched->entry.path;
  return fail(ErrorKind::kIo,
              "changed while it was being read, without a change of size or time: " +
                  (report.reasons.empty() ? std::string() : report.reasons.front()),
              {file}, "wait until no process writes to the checkpoint, then run this again");
}

}  // namespace shw
