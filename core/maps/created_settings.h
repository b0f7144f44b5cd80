// Entries that an optimizer asks for besides its moments, for states converted from a program that
// keeps them elsewhere: a step for each parameter, and the settings of its group.
#pragma once

#include <utility>
#include <vector>

#include "core/formats/adam_settings.h"
#include "core/maps/choose_map.h"

namespace shw {

// Settings of a group of torch's AdamW, by name.
std::vector<std::pair<const char*, EntryValue>> adamw_settings(const AdamSettings& adam,
                                                               double weight_decay);

// Empty if the target program has no place for them. Torch's AdamW loads a group only if all its
// parameters have equal settings, so all get the same; Megatron's groups differ in weight decay
// (none for biases and vectors) and in whether they hold experts.
std::vector<Step> create_settings(const MappedSteps& mapped, const AdamSettings& settings);

}  // namespace shw
