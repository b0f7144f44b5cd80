#include "core/repair/apply.h"

#include <algorithm>

#include "core/io/place.h"
#include "core/repair/lower.h"
#include "core/repair/steps.h"

namespace shw {
namespace {

Status check_plan(const Checkpoint& checkpoint, const Plan& plan) {
  if (plan.empty()) return fail(ErrorKind::kUsage, "the plan is empty: there is nothing to repair");
  if (checkpoint.directory() == nullptr)
    return fail(ErrorKind::kUsage, "the checkpoint lies in no directory");
  for (const PlannedTensor& tensor : plan.tensors) SHW_CHECK(prove_planned(checkpoint, tensor));
  return check_items_are_there(checkpoint);
}

// "<checkpoint>-repaired", "-repaired-2", ...
std::string free_name(const std::string& source) {
  std::string base = source + "-repaired";
  std::string name = base;
  for (int i = 2; exists(name); ++i) name = base + "-" + std::to_string(i);
  return name;
}

Result<std::string> check_out(const std::string& source, const std::string& wanted) {
  SHW_TRY(std::string real_source, resolved_path(source));
  std::string out = without_trailing_slashes(wanted.empty() ? free_name(real_source) : wanted);
  std::string parent = parent_of(out);
  if (!exists(parent)) {
    return fail(ErrorKind::kIo, "is not there, so nothing can be written into it", {parent},
                "make the folder first, or choose another one with --out");
  }
  SHW_TRY(std::string real_out, resolved_path(out));
  if (is_within(real_out, real_source) || is_within(real_source, real_out)) {
    return fail(ErrorKind::kUsage, "the output must lie beside the checkpoint, not in it", {out},
                "choose another directory with --out");
  }
  if (exists(out)) {
    return fail(ErrorKind::kUsage, "is there already, and is never replaced", {out},
                "choose another name with --out");
  }
  return out;
}

}  // namespace

Result<std::string> output_of(const Checkpoint& checkpoint, const ApplyOptions& options) {
  if (checkpoint.directory() == nullptr)
    return fail(ErrorKind::kUsage, "the checkpoint lies in no directory");
  if (options.in_place) return checkpoint.directory()->name();
  return check_out(checkpoint.directory()->name(), options.out);
}

Result<RepairResult> apply_plan_on(const RepairFileSystem& files, const Checkpoint& checkpoint,
                                   const Plan& plan, const ApplyOptions& options,
                                   Progress* progress) {
  SHW_CHECK(check_plan(checkpoint, plan));
  if (options.in_place) {
    if (!options.out.empty())
      return fail(ErrorKind::kUsage, "in place and into a directory exclude each other");
    return repair_in_place(files, checkpoint, plan, progress);
  }
  SHW_TRY(std::string out, check_out(checkpoint.directory()->name(), options.out));
  return repair_into_new_directory(files, checkpoint, plan, out, progress);
}

Result<RepairResult> apply_plan(const Checkpoint& checkpoint, const Plan& plan,
                                const ApplyOptions& options, Progress* progress) {
  return apply_plan_on(real_file_system(), checkpoint, plan, options, progress);
}

Status undo_repair(const std::string& checkpoint_path) {
  return undo_repair_on(real_file_system(), checkpoint_path);
}

const RepairFileSystem& real_file_system() {
  static const RepairFileSystem kReal{create_directory,  open_writable_directory,
                                      publish_directory, discard_directory,
                                      free_bytes,        open_directory};
  return kReal;
}

RepairFileSystem faulty_file_system(const WriteFault& decide, const ReadFault& reads) {
  auto ask = [decide](const char* step, const std::string& path) -> Status {
    if (auto error = decide(step, path)) return tl::unexpected<Error>(std::move(*error));
    return {};
  };
  using Opened = RepairFileSystem::Opened;
  auto wrap = [decide](Opened opened) -> Opened {
    if (!opened) return opened;
    return faulty_writable(std::move(*opened), decide);
  };
  RepairFileSystem files;
  files.create = [=](const std::string& path) -> Opened {
    SHW_CHECK(ask("make directory", path));
    return wrap(create_directory(path));
  };
  files.open = [=](const std::string& path) { return wrap(open_writable_directory(path)); };
  files.publish = [=](const std::string& temporary, const std::string& final_path) -> Status {
    SHW_CHECK(ask("publish", final_path));
    return publish_directory(temporary, final_path);
  };
  files.discard = [=](const std::string& path, const std::string& marker) -> Status {
    SHW_CHECK(ask("discard", path));
    return discard_directory(path, marker);
  };
  files.free_space = free_bytes;
  files.look = [=](const std::string& path) -> Result<std::shared_ptr<const Directory>> {
    SHW_TRY(auto directory, open_directory(path));
    return reads == nullptr ? directory : faulty_directory(std::move(directory), reads);
  };
  return files;
}

}  // namespace shw
