// Parameters that a PEFT adapter wraps by name (target_parameters), mostly stacked experts: assigns
// matrices to parameters, and finds the tensors of the base that form them.
//
//   M.lora_A, M.lora_B                        matrices of one parameter of module M
//   M.base_layer.lora_A, M.base_layer.lora_B  of a parameter wrapped before it, and so on
//
// Names do not tell which parameter is meant; shapes do. A base may store a parameter as one tensor
// or, in most models' files, as one matrix per expert.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/combine/base_names.h"
#include "core/combine/expert_rows.h"
#include "core/facts/names/adapter_config.h"

namespace shw {

using LoraParts = std::map<LoraPart, TensorId>;

struct ParameterProduct {
  std::string parameter;  // "model.layers.0.mlp.experts.gate_up_proj"
  TensorId weight{};      // in the base
  ExpertProduct product;  // without its scale, which the caller sets
};

// Removes the matrices of wrapped parameters from `modules`. kUnsupported if no parameter of the
// base matches them, or several do.
Result<std::vector<ParameterProduct>> consume_wrapped_parameters(
    const std::shared_ptr<const Checkpoint>& base, const std::shared_ptr<const Checkpoint>& adapter,
    const AdapterConfig& config, BaseNames& names, std::map<std::string, LoraParts>& modules);

}  // namespace shw
