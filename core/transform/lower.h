// From an arrangement to what is written: the tiles of every tensor as the writer of a format takes
// them, and the program that makes their elements. One pass over the tensors; those that no step
// touched are never held together.
#pragma once

#include <vector>

#include "core/base/progress.h"
#include "core/formats/format_writer.h"
#include "core/model/format.h"
#include "core/program/program.h"
#include "core/transform/target_state.h"

namespace shw {

// Where it goes.
struct WantedForm {
  const Format* format = nullptr;  // has a writer
  std::uint64_t shard_bytes = 0;   // Outputs::shard_bytes
  std::string out;                 // the folder, as the metadata says it
  // Of a repair alone: files of the source stay as they are, and every tile whose item stays says
  // so (TargetChunk). Else all of it is written anew.
  bool keeps_files = false;
};

struct LoweredTarget {
  Outputs outputs;
  LaidOut laid_out;
  Program program;                        // canonical and proved
  std::vector<const Checkpoint*> inputs;  // of its sources
  std::vector<OutputId> made;             // by index in laid_out.made
};

// Every tensor that is written anew covers its shape exactly once, or the error names the first
// that does not: a hole is never filled by itself.
Result<LoweredTarget> lower_target(const TargetState& all, const WantedForm& form,
                                   Progress* progress = nullptr);

// What `.metadata` is to say where every item stays where it lies. kUnsupported with the first
// tensor of which bytes would have to move or to be written.
Result<Outputs> outputs_in_place(const TargetState& all, const WantedForm& form,
                                 Progress* progress = nullptr);

// Tensors with elements that are not their own, with boxes of their new places.
std::vector<std::pair<std::string, Loss>> losses_after(const TargetState& all);

// An entry in the tiles that the format can hold; where files stay and nothing was done to it, all
// of its tiles as they were saved, sound or not.
Result<TargetTensor> target_for(const TargetState& all, const TargetEntry& entry,
                                const WantedForm& form);

}  // namespace shw
