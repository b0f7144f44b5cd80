// Looks at a checkpoint and says what is wrong: a list of rules, each a pure function of what was
// opened.
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
  std::optional<Mesh> mesh;          // what the person said (--mesh)
  // Another checkpoint of the same model (--against): its names, shapes and dtypes are expected
  // where there is no spec, and rules may compare bytes with it. May be null.
  std::shared_ptr<const Checkpoint> reference = nullptr;
  // Each member calls check() alike; what reads every byte is shared out. Null: alone.
  Team* team = nullptr;
  // Where every byte is read, what statistics are made of, for who asks for them afterwards. Null:
  // nobody does.
  CountedChunks* counted = nullptr;
  // That may be taken for what is held beside a reference: sums of rows, decoded items, tensors
  // that are looked at whole. A few MiB a thread come to it.
  std::uint64_t memory = kDefaultMemory;
};

enum class Verdict : std::uint8_t { kClean, kFindings, kUndecided };
std::string_view name(Verdict verdict);

struct CheckReport {
  Verdict verdict = Verdict::kClean;  // kFindings: at least one above info; kUndecided: something
                                      // could not be looked at
  Depth depth = Depth::kMetadata;
  std::string deeper;             // what a deeper look could still find; empty at kData
  std::vector<Finding> findings;  // causes before what they explain, then by severity
  std::shared_ptr<const Spec> spec = nullptr;  // what was expected: given, or from the reference
  std::vector<Unjudged> unjudged = {};         // hints first
};

// Something could not be looked at, whatever else was found: who takes the other findings as known
// must not take the checkpoint for clean.
bool leaves_open(const CheckReport& report);

Result<CheckReport> check(const Checkpoint& checkpoint, const CheckOptions& options,
                          Progress* progress = nullptr);

}  // namespace shw
