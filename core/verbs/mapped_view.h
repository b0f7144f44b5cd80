// A checkpoint as another program has it: what the steps of a map make of it, read where it lies.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/maps/map_steps.h"
#include "core/verbs/map_options.h"

namespace shw::verbs {

// "hf", "torch_dist", "titan", "fsdp_dtensor".
bool names_a_program(const std::string& word);

// The steps of the map that options or names choose. `to`: a program, or any word where --map is
// given. kUsage says what has to be told beside: a map, a size that nothing says.
struct MappedByOptions {
  MappedSteps steps;
  bool names_world = false;  // `to` is one of the map's two sides
  ModelFacts facts = {};
};
// `like`: a checkpoint of that program whose forms and padding the result gets; may be null.
Result<MappedByOptions> mapped_by(const Checkpoint& checkpoint, const std::string& to,
                                  const MapOptions& mapping, const LeaveOut& leave_out,
                                  const Checkpoint* like = nullptr);
// A line each: by which map, what is left out, what the other program must be told.
std::vector<std::string> notes_on(const MappedByOptions& made);
// kUnsupported where Megatron's arguments say that norms hold the factor, and the model's own hold
// the factor less 1.
Status check_norms(const Checkpoint& checkpoint, const MappedByOptions& made);

struct MappedView {
  std::shared_ptr<const Checkpoint> checkpoint;
  std::vector<std::string> notes = {};
};
Result<MappedView> mapped_view(const std::shared_ptr<const Checkpoint>& checkpoint,
                               const std::string& to, const MapOptions& mapping, Progress* progress,
                               const Checkpoint* like = nullptr);

}  // namespace shw::verbs
