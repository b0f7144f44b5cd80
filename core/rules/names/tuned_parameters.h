// Reports parameters of PEFT's adapters other than LoRA that are missing or do not have the sizes
// that adapter_config.json gives.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/facts/facts.h"
#include "core/facts/names/adapter_config.h"
#include "core/model/finding.h"

namespace shw {

// "model.layers.0.self_attn.q_proj" of a parameter of this kind of adapter; nullopt for LoRA's and
// for other tensors.
std::optional<std::string> tuned_module(const AdapterConfig& config, std::string_view fqn);

// Whether a name ends in that of a parameter of this kind of adapter, whatever comes before it.
bool has_ending_of_type(const AdapterConfig& config, std::string_view fqn);

// Parameters without the others that their module needs, and VBLoRA without its vector bank.
void report_lost_parameters(const Facts& facts, const AdapterConfig& config,
                            std::vector<Finding>& findings);

// Ranks, block sizes and lengths of prompts other than the config's.
void report_mismatched_sizes(const Facts& facts, const AdapterConfig& config,
                             std::vector<Finding>& findings);

}  // namespace shw
