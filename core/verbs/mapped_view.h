// A checkpoint in the layout of another program: the steps of a map, computed on demand while
// reading.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/maps/choose_map.h"
#include "core/maps/map_steps.h"
#include "core/verbs/map_options.h"

namespace shw::verbs {

// True for "hf", "torch_dist", "titan", "fsdp_dtensor".
bool is_naming_scheme(const std::string& word);

// Steps of the map that options or names select. `to`: a program, or anything if --map is given.
// kUsage names a missing map or size.
struct MappedByOptions {
  MappedSteps steps;
  bool names_world = false;  // `to` is one of the map's two worlds
  ModelFacts facts = {};
};
// `like`: a checkpoint of the target program, whose forms and padding the result gets; may be null.
Result<MappedByOptions> map_by_options(const Checkpoint& checkpoint, const std::string& to,
                                       const MapOptions& mapping,
                                       const ConversionExclusions& leave_out,
                                       const Checkpoint* like = nullptr,
                                       StatePlaces places = StatePlaces::kOfProgram);
// One line each: the maps, what is dropped, and options that the other program needs.
std::vector<std::string> mapping_notes(const MappedByOptions& made);
// kUnsupported if Megatron's arguments say that norms store the factor, but this model's norms
// store the factor minus 1.
Status check_norm_convention_for_hf(const Checkpoint& checkpoint, const MappedByOptions& made);

struct MappedView {
  std::shared_ptr<const Checkpoint> checkpoint;
  std::vector<std::string> notes = {};
};
Result<MappedView> mapped_view(const std::shared_ptr<const Checkpoint>& checkpoint,
                               const std::string& to, const MapOptions& mapping, Progress* progress,
                               const Checkpoint* like = nullptr,
                               StatePlaces places = StatePlaces::kOfProgram);

}  // namespace shw::verbs
