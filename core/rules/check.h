// Checks a checkpoint with a list of rules, each a pure function of the opened checkpoint.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/progress.h"
#include "core/base/team.h"
#include "core/facts/values/counted_chunks.h"
#include "core/mesh/mesh.h"
#include "core/model/checkpoint.h"
#include "core/rules/rules.h"
#include "core/rules/unjudged.h"
#include "core/spec/spec.h"

namespace shw {

struct CheckOptions {
  std::optional<Depth> depth;        // default: headers up to 100,000 items, metadata above
  std::shared_ptr<const Spec> spec;  // may be null
  std::optional<Mesh> mesh;          // the user's mesh (--mesh)
  // Another checkpoint of the same model (--against): provides names, shapes and dtypes if there is
  // no spec, and bytes for comparisons. May be null.
  std::shared_ptr<const Checkpoint> reference = nullptr;
  // All ranks call check() with equal arguments; full reads are divided. Null: a single process.
  Team* team = nullptr;
  // If every byte is read, receives statistics for later use; may be
  // null.
  CountedChunks* counted = nullptr;
  // Memory limit for comparisons with a reference: row sums, decoded items, whole tensors. A few
  // MiB per thread are added.
  std::uint64_t memory = kDefaultMemory;
};

enum class Verdict : std::uint8_t { kClean, kFindings, kUndecided };
std::string_view name(Verdict verdict);

struct CheckReport {
  Verdict verdict = Verdict::kClean;  // kFindings: at least one above info;
                                      // kUndecided: something could not be examined
  Depth depth = Depth::kMetadata;
  bool lacks_diagnoses = false;                // read from an answer, which does not write them
  std::string deeper;                          // what a deeper check could find; empty at kData
  std::vector<Finding> findings;               // causes before their symptoms, then by severity
  std::shared_ptr<const Spec> spec = nullptr;  // expected entries: given, or from the reference
  std::vector<Unjudged> unjudged = {};         // hints first
};

// True if something could not be examined: even if all findings are accepted, the checkpoint is not
// known to be clean.
bool has_unexamined_parts(const CheckReport& report);

Result<CheckReport> check(const Checkpoint& checkpoint, const CheckOptions& options,
                          Progress* progress = nullptr);

}  // namespace shw
