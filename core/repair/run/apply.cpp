#include "core/repair/run/apply.h"

#include <algorithm>
#include <set>

#include "core/formats/single_file_directory.h"
#include "core/io/path_text.h"
#include "core/io/store.h"
#include "core/model/reachable.h"
#include "core/repair/lower/lower.h"
#include "core/repair/run/carry_out.h"
#include "core/repair/run/local_place.h"
#include "core/repair/run/run_plan.h"

namespace shw {
namespace {

// Checks that all files with saved bytes exist. Tiles without a record need no bytes if the plan
// changes their tensor.
Status check_is_there(const Checkpoint& checkpoint, const Plan& plan) {
  std::set<TensorId> without_record;
  for (const PlannedTensor& planned : plan.tensors) {
    for (ChunkId chunk : checkpoint.chunks(planned.tensor)) {
      if (!checkpoint.item(chunk)) without_record.insert(planned.tensor);
    }
  }
  if (without_record.empty()) return check_all_reachable(checkpoint);
  for (TensorId tensor : checkpoint.tensors()) {
    for (ChunkId chunk : checkpoint.chunks(tensor)) {
      auto item = checkpoint.item(chunk);
      if (!item && without_record.contains(tensor)) continue;
      SHW_CHECK(check_reachable(checkpoint, item, checkpoint.fqn(tensor)));
    }
  }
  for (const NonTensorEntry& object : checkpoint.objects()) {
    if (!object.inlined) SHW_CHECK(check_reachable(checkpoint, object.item, object.fqn));
  }
  return {};
}

Status check_plan(const Checkpoint& checkpoint, const Plan& plan) {
  if (plan.empty()) return fail(ErrorKind::kUsage, "the plan is empty: there is nothing to repair");
  if (checkpoint.directory() == nullptr)
    return fail(ErrorKind::kUsage, "the checkpoint is not in a directory");
  for (const PlannedTensor& tensor : plan.tensors) SHW_CHECK(prove_planned(checkpoint, tensor));
  // A plan with steps may drop missing tensors; lowering the steps checks what remains.
  return plan.transforms() ? Status{} : check_is_there(checkpoint, plan);
}

// "<checkpoint>-repaired", "-repaired-b", "-repaired-c", ... Letters, because tools that look for
// the newest step of a run would read "checkpoint-500-repaired-2" as a step.
std::string free_name(const Store& store, const std::string& source, const std::string& suffix) {
  std::string base = source + suffix;
  std::string name = base;
  for (std::size_t i = 1; store.exists(name); ++i) {
    std::string letters;
    for (std::size_t left = i + 1; left != 0; left = (left - 1) / 26)
      letters.insert(letters.begin(), static_cast<char>('a' + (left - 1) % 26));
    name = base + "-" + letters;
  }
  return name;
}

// Base of the result's name: the folder, or the file that was opened, without its extension.
Result<std::string> base_of(const Directory& directory, const std::string& folder) {
  if (!is_single_file_directory(directory)) return folder;
  SHW_TRY(auto files, directory.list());
  std::string file = files.front().path;
  const std::size_t name = file.rfind('/') == std::string::npos ? 0 : file.rfind('/') + 1;
  const std::size_t dot = file.rfind('.');
  if (dot != std::string::npos && dot > name) file.resize(dot);
  return folder + "/" + file;
}

Result<std::string> resolve_output(const Store& store, const Directory& directory,
                                   const ApplyOptions& options) {
  const std::string& source = directory.name();
  const std::string& wanted = options.out;
  SHW_TRY(std::string real_source, store.resolved(source));
  SHW_TRY(const std::string base, base_of(directory, real_source));
  std::string out =
      without_trailing_slashes(wanted.empty() ? free_name(store, base, options.suffix) : wanted);
  SHW_CHECK(check_is_local(out));
  std::string parent = parent_of(out);
  if (!store.exists(parent)) {
    return fail(ErrorKind::kIo, "does not exist, so nothing can be written into it", {parent},
                "make the folder first, or choose another one with --out");
  }
  SHW_TRY(std::string real_out, store.resolved(out));
  // Other files in the folder of a single-file checkpoint do not belong to it.
  if (!is_single_file_directory(directory) && is_within(real_out, real_source)) {
    return fail(ErrorKind::kUsage, "the output must be next to the checkpoint, not in it", {out},
                "choose another directory with --out");
  }
  if (!store.is_free_for_folder(out)) {
    return fail(ErrorKind::kUsage, "already exists, and is never replaced", {out},
                "choose another name with --out");
  }
  return out;
}

}  // namespace

Result<std::string> output_of(const Store& store, const Checkpoint& checkpoint,
                              const ApplyOptions& options) {
  if (checkpoint.directory() == nullptr)
    return fail(ErrorKind::kUsage, "the checkpoint is not in a directory");
  if (options.in_place) return checkpoint.directory()->name();
  return resolve_output(store, *checkpoint.directory(), options);
}

Result<RepairResult> apply_plan(Store& store, const Checkpoint& checkpoint, const Plan& plan,
                                const ApplyOptions& options, Progress* progress) {
  SHW_CHECK(check_plan(checkpoint, plan));
  if (options.in_place) {
    if (options.team != nullptr)
      return fail(ErrorKind::kUsage,
                  "a repair in place writes one small file and cannot be distributed", {},
                  "run it in one process");
    if (!options.out.empty())
      return fail(ErrorKind::kUsage, "--in-place and --out cannot be combined");
    if (options.integrity)
      return fail(ErrorKind::kUsage, "a list of hashes is written into a new folder, not in place");
    return repair_in_place(store, checkpoint, plan, progress);
  }
  ApplyOptions settled = options;
  SHW_TRY(settled.out, resolve_output(store, *checkpoint.directory(), options));
  return run_plan(store, checkpoint, plan, settled, progress);
}

Result<RepairResult> apply_plan(const Checkpoint& checkpoint, const Plan& plan,
                                const ApplyOptions& options, Progress* progress) {
  return apply_plan(posix_store(), checkpoint, plan, options, progress);
}

}  // namespace shw
