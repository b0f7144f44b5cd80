// Carries a plan out, beside what was opened or in place; proves what came out; takes an in-place
// repair back.
//
// Never writes into what was opened: everything goes into "<out>.shardwright-partial-<pid>", is
// made durable, verified, and renamed as the last step. In place, `.metadata` alone is replaced and
// the old one kept as `.metadata.shardwright-undo`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/io/sink.h"
#include "core/repair/plan.h"

namespace shw {

// One chunk of the source whose elements have moved, and where each box of it lies now.
struct InverseChunk {
  struct Part {
    Extents at;     // in the old chunk
    Extents from;   // in the new tensor
    Extents sizes;  // in the old chunk
    Extents order =
        {};  // dim d of the old chunk is dim order[d] of the new tensor; empty: the same
  };
  Extents sizes;
  std::string hash;  // XXH3-128 of its elements, row-major
  std::vector<Part> parts;
};

struct TensorCertificate {
  std::string fqn;
  std::int64_t kept = 0;
  std::int64_t lost = 0;
  std::vector<Box> lost_boxes;
  std::vector<std::string> items_before,
      items_after;                // XXH3-128 of each item, in chunk order; equal for a relabel
  Extents shape;                  // after the repair
  std::string layout;             // XXH3-128 of the shape and of every tile's box, in chunk order
  std::string renamed_from = {};  // its name before, where that was another
  // What stands where it is lost: "zero", "cast", "from"; empty where nothing is, or where a hole
  // was there before. `fill_from` names the tensor, `fill_checkpoint` where that lies ("from").
  std::string fill = {}, fill_from = {}, fill_checkpoint = {};
  std::vector<InverseChunk> inverse = {};  // of a tensor whose bytes moved, and none was lost
  std::string dtype = {};                  // empty in certificates of before
};

// Every other entry: its item as it lies there.
struct ObjectCertificate {
  std::string fqn;
  std::string item;  // XXH3-128; empty where it has none
};

// Every file beside the certificate: its size, and the hash of what is in it and in no item. So
// that with the hashes of the items every byte is certified, and none is read twice.
struct FileCertificate {
  std::string path;
  std::uint64_t size = 0;
  std::string rest;
};

// An entry that is no tensor and says now what another one said.
struct EntryCertificate {
  std::string fqn;
  std::string from;
  std::string item;  // XXH3-128 of its item now
};

struct Certificate {
  bool lossless = true;
  std::string source;   // as opened
  std::string version;  // of this program
  std::vector<Operation> operations;
  std::vector<TensorCertificate>
      tensors;  // every tensor of the checkpoint, those that did not change too
  std::vector<EntryCertificate> entries;  // only those that changed
  std::vector<ObjectCertificate> objects = {};
  std::vector<FileCertificate> files = {};
  // Of one that was read: whether it is what was written, by its own hash.
  enum class Seal : std::uint8_t { kMissing, kHolds, kBroken } seal = Seal::kMissing;
};

struct ApplyOptions {
  std::string out;  // the new directory; empty: "<checkpoint>-repaired" beside it, "-2", ... where
                    // that exists
  bool in_place = false;
};

struct RepairResult {
  std::string output;       // the directory
  std::string certificate;  // the file
  bool lossless = true;
};

// Whether the plan can be carried out with in_place: the error says why it cannot.
Status check_in_place(const Checkpoint& checkpoint, const Plan& plan);
// Where a repair will write: what a person is asked before anything is. An error where it cannot.
Result<std::string> output_of(const Checkpoint& checkpoint, const ApplyOptions& options);

Result<RepairResult> apply_plan(const Checkpoint& checkpoint, const Plan& plan,
                                const ApplyOptions& options, Progress* progress = nullptr);

// Takes back what --in-place did: the old `.metadata` returns, byte for byte. kUsage where there is
// nothing to take back.
Status undo_repair(const std::string& checkpoint_path);

struct VerifyReport {
  enum class Outcome : std::uint8_t { kProved, kBroken, kUndecided } outcome = Outcome::kUndecided;
  std::vector<std::string>
      reasons;  // why not proved, each with file and tensor; or what was proved
  std::int64_t tensors = 0, kept = 0, lost = 0;
};
std::string_view name(VerifyReport::Outcome outcome);  // "proved", "broken", "undecided"

// Checks a repaired checkpoint against its certificate.json: coverage, hashes of all items, kept +
// lost = total, and bytes that moved mapped back to what they were. Undecided without one.
Result<VerifyReport> verify_repair(const std::string& checkpoint_path,
                                   Progress* progress = nullptr);

std::string certificate_to_json(const Certificate& certificate);
Result<Certificate> certificate_from_json(std::string_view json, const std::string& source);

}  // namespace shw
