// Names of what trainers (transformers, accelerate, torch's examples) leave beside the weights.
#pragma once

#include <cstdint>
#include <string_view>

namespace shw {

enum class TrainerFile : std::uint8_t {
  kNone,
  kOptimizer,  // "optimizer.pt", "optimizer.bin", "optimizer_1.bin"
  kOther,      // the scheduler, random states, the scaler, the arguments of the run
};

// `path`: its last part tells.
TrainerFile trainer_file(std::string_view path);

// "optimizer_rank_3.pt": one rank's part of an optimizer, which MLite saves beside DCP.
bool is_optimizer_of_rank(std::string_view path);

}  // namespace shw
