// Parameters that an adapter of PEFT wraps by name (target_parameters), most of them stacked
// experts: which matrices are of which parameter, and which tensors of the base it is made of.
//
//   M.lora_A, M.lora_B                        of one parameter of module M
//   M.base_layer.lora_A, M.base_layer.lora_B  of one that was wrapped before it, and so on
//
// No name says which parameter is meant: shapes do. A base may hold a parameter as one tensor or,
// as files of most models do, one matrix for each expert.
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
  TensorId weight{};      // of the base
  ExpertProduct product;  // its scale is not known here
};

// Takes the matrices of wrapped parameters out of `modules`. kUnsupported where no parameter of the
// base fits them, or more than one.
Result<std::vector<ParameterProduct>> take_wrapped_parameters(
    const std::shared_ptr<const Checkpoint>& base, const std::shared_ptr<const Checkpoint>& adapter,
    const AdapterConfig& config, BaseNames& names, std::map<std::string, LoraParts>& modules);

}  // namespace shw
