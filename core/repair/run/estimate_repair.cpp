#include "core/repair/run/estimate.h"

#include <algorithm>
#include <memory>

#include "core/base/hash.h"
#include "core/repair/lower/lower.h"
#include "core/repair/plan/target_of_plan.h"
#include "core/repair/run/estimate_devices.h"
#include "core/repair/run/make_target.h"

namespace shw {

Result<RepairEstimate> outlook_of(const Checkpoint& checkpoint, const Plan& plan,
                                  const ApplyOptions& options) {
  if (checkpoint.directory() == nullptr)
    return fail(ErrorKind::kUsage, "the checkpoint is not in a directory");
  // An empty plan needs a format with an index: otherwise there is nothing to write.
  if (plan.empty() && checkpoint.format().rewrite == Rewrite::kFiles)
    return fail(ErrorKind::kUnsupported, "the plan is empty: there is nothing to write");
  for (const PlannedTensor& tensor : plan.tensors) SHW_CHECK(prove_planned(checkpoint, tensor));
  // A pointer without ownership: the caller's checkpoint outlives it.
  const std::shared_ptr<const Checkpoint> source(std::shared_ptr<void>(), &checkpoint);
  SHW_TRY(TargetOfPlan target, target_of_plan(source, plan, nullptr));
  TargetRun wanted;
  wanted.form = target.form;
  wanted.form.out = options.out;
  SHW_TRY(const PreparedRun prepared, prepare_run(target.all, wanted, nullptr));
  const FolderRun& run = prepared.run;
  RepairEstimate outlook;
  outlook.files_copied = run.copied.size();
  outlook.files_made = run.laid_out.files.size();
  outlook.tiles_made = run.laid_out.made.size();
  for (const OutputTensor& tensor : run.outputs.tensors) outlook.tiles_kept += tensor.tiles.size();
  outlook.tiles_kept -= std::min(outlook.tiles_kept, outlook.tiles_made);
  for (const Entry& entry : run.copied) outlook.bytes_copied += entry.size;
  std::uint64_t along = outlook.bytes_copied;
  for (const OutputCopy& copy : run.laid_out.copies) along += copy.length;
  outlook.bytes_read = outlook.bytes_written = along;
  for (const ProgramJob& job : run.program.jobs) {
    if (job.source == SourceId::kNone) continue;
    outlook.bytes_read +=
        static_cast<std::uint64_t>(volume(run.program.sizes(job)).value_or(0)) * size_of(job.from);
  }
  for (const WrittenTile& made : run.laid_out.made) outlook.bytes_written += made.length;
  outlook.program = to_hex(hash_of(run.program));
  SHW_TRY(outlook.forecast, forecast(run.program, run.inputs, along, options.memory));
  estimate_devices(run.program, options.device, outlook);
  return outlook;
}

}  // namespace shw
