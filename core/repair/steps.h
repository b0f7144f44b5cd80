// The steps of carrying a plan out. What they write, and what they read of it, goes through a
// Store: tests put one underneath that fails or forgets.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/formats/dcp/dcp_write.h"
#include "core/formats/safetensors/safetensors.h"
#include "core/io/store.h"
#include "core/repair/payloads.h"
#include "core/repair/plan_types.h"
#include "core/repair/repair_result.h"

namespace shw {

Result<RepairResult> repair_into_new_directory(Store& store, const Checkpoint& checkpoint,
                                               const Plan& plan, const std::string& out,
                                               Progress* progress);
Result<RepairResult> repair_in_place(Store& store, const Checkpoint& checkpoint, const Plan& plan,
                                     Progress* progress);

// Half-made directories are "<out>.shardwright-partial-<pid>" (kPartialMark); every name of ours in
// a directory that is repaired in place holds ".shardwright-" too.
inline constexpr const char* kOurMark = ".shardwright-";
inline constexpr const char* kMetadataFile = ".metadata";

// Where the new item of a planned chunk lies; chunks that keep their old item have none.
using MadeItems = std::map<NewChunk, DcpItem>;
// What the new `.metadata` says: planned tensors with their new chunks, everything else as it was.
// kUnsupported where something that is not repaired cannot be said again (a tile without an item).
Result<DcpMetadata> new_metadata(const Checkpoint& checkpoint, const Plan& plan,
                                 const MadeItems& made, const std::string& checkpoint_id);
// The plan as the format can hold it: a plain safetensors file holds a tensor in one piece.
Plan in_form_of(const Checkpoint& checkpoint, Plan plan);
// What every safetensors file becomes, by its path; `added`: new files, and the one each begins as.
struct NewSafetensors {
  std::map<std::string, SafetensorsChange> changes;
  std::map<std::string, std::string> added;
  std::int64_t more_bytes = 0, more_elements = 0;  // of all tensors together
  std::vector<PayloadPlace> places;                // of what is written; who writes it comes later
};
Result<NewSafetensors> new_safetensors(const Checkpoint& checkpoint, const Plan& plan);
// Fills in where the payloads will lie, and what the added files drop of those they begin as.
Status lay_out_safetensors(const Checkpoint& checkpoint, const Plan& plan, NewSafetensors& made);
// What is written is what `payloads` makes; it must outlive `made`.
void give_payloads(const Checkpoint& checkpoint, const Plan& plan, Payloads& payloads,
                   NewSafetensors& made);
// A new file of items, in the order in which they stand there.
struct NewItemFile {
  std::string name;
  std::vector<NewChunk> chunks;
};
Result<std::vector<PayloadPlace>> lay_out_items(const Checkpoint& checkpoint, const Plan& plan,
                                                const std::vector<NewItemFile>& files);
// What was written says what was planned, tensor by tensor and tile by tile.
Status compare_metadata(const Checkpoint& checkpoint, const Plan& plan, const Checkpoint& result);
// Every item that is recorded lies inside a file that is there: before terabytes are copied.
Status check_items_are_there(const Checkpoint& checkpoint);

}  // namespace shw
