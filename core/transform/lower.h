// Turns a target into the outputs of a format's writer and the program that computes their
// elements. One pass over the tensors; unchanged tensors are never all in memory.
#pragma once

#include <vector>

#include "core/base/progress.h"
#include "core/formats/format_writer.h"
#include "core/model/format.h"
#include "core/program/program.h"
#include "core/transform/target_state.h"

namespace shw {

// Format and place of the result.
struct ResultFormat {
  const Format* format = nullptr;  // has a writer
  std::uint64_t shard_bytes = 0;   // Outputs::shard_bytes
  std::string out;                 // folder, as written into metadata
  // Only for a repair: files of the source are kept, and every tile that keeps its item is marked
  // (TargetChunk). Otherwise everything is rewritten.
  bool keeps_files = false;
};

struct LoweredTarget {
  Outputs outputs;
  LaidOut laid_out;
  Program program;                        // canonical and proved
  std::vector<const Checkpoint*> inputs;  // of the program's sources
  std::vector<OutputId> made;             // by index in laid_out.made
};

// Lowers the target. Every tensor that is rewritten must cover its shape exactly once; the error
// names the first that does not. A hole is never filled implicitly.
Result<LoweredTarget> lower_target(const TargetState& all, const ResultFormat& form,
                                   Progress* progress = nullptr);

// Layout of `.metadata` if every item stays at its place. kUnsupported, with the first tensor, if
// bytes would have to move or to be written.
Result<Outputs> outputs_in_place(const TargetState& all, const ResultFormat& form,
                                 Progress* progress = nullptr);

// By FQN: lost elements, with boxes at their new places.
std::vector<std::pair<std::string, Loss>> losses_after(const TargetState& all);

// An entry in tiles that the format can store. If files are kept and the entry is unchanged, all
// its saved tiles, even damaged ones.
Result<TargetTensor> target_for(const TargetState& all, const TargetEntry& entry,
                                const ResultFormat& form);

}  // namespace shw
