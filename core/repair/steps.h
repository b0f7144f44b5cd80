// The steps of carrying a plan out, and the file system that they stand on: tests put a failing one
// underneath.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/io/place.h"
#include "core/repair/apply.h"

namespace shw {

struct RepairFileSystem {
  using Opened = Result<std::unique_ptr<WritableDirectory>>;
  std::function<Opened(const std::string& path)> create;  // of sink.h, all five
  std::function<Opened(const std::string& path)> open;
  std::function<Status(const std::string& temporary, const std::string& final_path)> publish;
  std::function<Status(const std::string& path, const std::string& marker)> discard;
  std::function<Result<std::uint64_t>(const std::string& path)> free_space;
  // What was written, to be read back.
  std::function<Result<std::shared_ptr<const Directory>>(const std::string& path)> look;
};
const RepairFileSystem& real_file_system();
// Every step asks `decide` first: those of the directories as faulty_writable() names them, and
// "make directory", "publish", "discard". `reads` is asked before what was written is read back.
RepairFileSystem faulty_file_system(const WriteFault& decide, const ReadFault& reads = nullptr);

Result<RepairResult> apply_plan_on(const RepairFileSystem& files, const Checkpoint& checkpoint,
                                   const Plan& plan, const ApplyOptions& options,
                                   Progress* progress);
Status undo_repair_on(const RepairFileSystem& files, const std::string& checkpoint_path);

Result<RepairResult> repair_into_new_directory(const RepairFileSystem& files,
                                               const Checkpoint& checkpoint, const Plan& plan,
                                               const std::string& out, Progress* progress);
Result<RepairResult> repair_in_place(const RepairFileSystem& files, const Checkpoint& checkpoint,
                                     const Plan& plan, Progress* progress);

// Half-made directories are "<out>.shardwright-partial-<pid>" (kPartialMark); every name of ours in
// a directory that is repaired in place holds ".shardwright-" too.
inline constexpr const char* kOurMark = ".shardwright-";
inline constexpr const char* kMetadataFile = ".metadata";

// The plan as the format can hold it: a plain safetensors file holds a tensor in one piece.
Plan in_form_of(const Checkpoint& checkpoint, Plan plan);
// What was written says what was planned, tensor by tensor and tile by tile.
Status compare_metadata(const Checkpoint& checkpoint, const Plan& plan, const Checkpoint& result);
// Every item that is recorded lies inside a file that is there: before terabytes are copied.
Status check_items_are_there(const Checkpoint& checkpoint);

}  // namespace shw
