// Names of files that trainers (transformers, accelerate, torch's examples) save with the weights.
#pragma once

#include <cstdint>
#include <string_view>

namespace shw {

enum class TrainerFile : std::uint8_t {
  kNone,
  kOptimizer,  // "optimizer.pt", "optimizer.bin", "optimizer_1.bin"
  kOther,      // scheduler, random states, scaler, arguments of the run
};

// Only the last part of `path` matters.
TrainerFile trainer_file(std::string_view path);

// True for "optimizer_rank_3.pt": one rank's part of an optimizer, saved by MLite next to DCP
// files.
bool is_optimizer_of_rank(std::string_view path);

}  // namespace shw
