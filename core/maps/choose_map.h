// Chooses maps and makes their steps: from the layout of one program ("world") to another, through
// Hugging Face's names if no map joins the two directly.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/maps/bind_map.h"
#include "core/maps/carried_states.h"
#include "core/transform/steps.h"

namespace shw {

struct MappedSteps {
  std::vector<Step> steps;
  std::vector<MapTensor> tensors;                  // result of the steps
  std::string from, to;                            // worlds
  std::vector<std::string> maps;                   // names of the maps in the order of use
  std::vector<std::string> left_out;               // FQNs of tensors
  std::vector<OmittedState> left_out_states = {};  // those of them that are optimizer states
  std::vector<std::string> omitted_entries;        // FQNs of optimizer entries that are not tensors
  std::vector<BoundMap> bound;                     // by map
  std::vector<BoundMap> of_states = {};            // by map and kind of optimizer state
  std::map<std::string, std::size_t> states = {};  // number of resulting states, by kind
  std::size_t created_master_count = 0;  // number of master weights that are copies of weights
  MapStates state_names = {};            // of the last map's program
  std::vector<ParameterWithStates> with_moments = {};
};

// Tensors that are not converted.
struct ConversionExclusions {
  std::vector<std::string> patterns = {};  // shell patterns of names
  bool states = false;                     // optimizer states
};

// Which optimizer states the result has names for.
enum class StatePlaces : std::uint8_t {
  kOfProgram,  // those that the program stores
  kAll,        // every kind, so that a way back can be compared with its source
};

std::vector<MapTensor> tensor_names_and_shapes(const Checkpoint& checkpoint);
// The world whose names most tensors have; empty if none has.
std::string naming_scheme_of(std::span<const MapTensor> tensors, const ModelFacts& facts);
// The worlds of the built-in maps.
std::vector<std::string> naming_schemes();

// `map`: null means the built-in ones. `to`: a world; empty: the map's other side. kUnsupported if
// tensors have neither a row nor a match in `leave_out`.
Result<MappedSteps> mapped_steps(const Checkpoint& checkpoint, const ModelMap* map,
                                 const std::string& to, const ModelFacts& facts,
                                 const ConversionExclusions& leave_out,
                                 StatePlaces places = StatePlaces::kOfProgram);

}  // namespace shw
