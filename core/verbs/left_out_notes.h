// Says what a conversion through a map leaves out: one line per kind of optimizer state and reason,
// with its count and the pattern of its names.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/maps/choose_map.h"

namespace shw::verbs {

// "exp_avg of 12 tensors: hf does not store them".
std::vector<std::string> left_out_state_texts(std::span<const OmittedState> states,
                                              const std::string& program);
// "3 tensors (model.layers.*.self_attn.rotary_emb.inv_freq)".
std::string left_out_tensors_text(const std::vector<std::string>& names);
void add_left_out_notes(const MappedSteps& mapped, std::vector<std::string>& notes);

}  // namespace shw::verbs
