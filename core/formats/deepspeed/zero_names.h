// File names in the folder of a DeepSpeed step (runtime/engine.py,
// runtime/pipe/module.py).
//
//   optimizer = [bf16_ | fp16_] zero_pp_rank_R_mp_rank_MM[_]optim_states.pt   one per rank
//   model     = mp_rank_MM_model_states.pt                        stages 0, 1, 2: one
//             | zero_pp_rank_R_mp_rank_MM_model_states.pt         stage 3: one per rank
//   layer     = layer_NN[-model_MM]-model_states.pt               of a pipeline
//   expert    = layer_L_expert_E_mp_rank_MM_model_states.pt
//   states    = expp_rank_R_mp_rank_MM_optim_states.pt            of experts, at stage 0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shw {

enum class ZeroFileKind : std::uint8_t { kOptimizer, kModel, kRankModel, kPart, kExpertOptimizer };

struct ZeroName {
  ZeroFileKind kind = ZeroFileKind::kExpertOptimizer;
  std::uint32_t rank = 0;     // R, data parallel
  std::uint32_t mp_rank = 0;  // MM, tensor and pipeline parallel
  std::string prefix = {};    // prefix of tensor names: "layer_03."
  bool is_layer = false;      // true for the file of a pipeline layer
};

// Parses a name without folders. Empty if it is not a file of DeepSpeed.
std::optional<ZeroName> parse_zero_name(std::string_view name);

// The name of the corresponding file of another rank: replaces the first number after
// "zero_pp_rank_".
std::string zero_name_of_rank(std::string_view name, std::uint32_t rank);

// The rank that wrote a file, from its path.
std::optional<std::uint32_t> rank_of_zero_file(std::string_view path);

}  // namespace shw
