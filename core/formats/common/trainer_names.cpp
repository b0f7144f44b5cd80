#include "core/formats/common/trainer_names.h"

#include <algorithm>
#include <array>

namespace shw {
namespace {

constexpr auto kEndings =
    std::to_array<std::string_view>({".pt", ".pth", ".bin", ".pkl", ".ckpt", ".safetensors"});
// These names may be followed by the number of an optimizer or rank.
constexpr auto kOthers = std::to_array<std::string_view>(
    {"scheduler", "lr_scheduler", "rng_state", "random_states", "scaler", "training_args",
     "sampler", "dl_state_dict", "custom_checkpoint", "train_state", "trainer_state"});

// True for "optimizer", "optimizer_0", "optimizer-12" if `word` is "optimizer".
bool is_numbered(std::string_view stem, std::string_view word) {
  if (!stem.starts_with(word)) return false;
  stem.remove_prefix(word.size());
  if (stem.empty()) return true;
  if (stem.front() != '_' && stem.front() != '-') return false;
  stem.remove_prefix(1);
  return !stem.empty() &&
         std::all_of(stem.begin(), stem.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

bool is_optimizer_of_rank(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const std::size_t dot = name.rfind('.');
  return dot != std::string_view::npos && is_numbered(name.substr(0, dot), "optimizer_rank") &&
         name[dot - 1] != 'k';
}

TrainerFile trainer_file(std::string_view path) {
  std::string_view stem = path.substr(path.rfind('/') + 1);
  const auto ending = std::find_if(kEndings.begin(), kEndings.end(),
                                   [&](std::string_view end) { return stem.ends_with(end); });
  if (ending == kEndings.end()) return TrainerFile::kNone;
  stem.remove_suffix(ending->size());
  if (is_numbered(stem, "optimizer") || is_numbered(stem, "optim")) return TrainerFile::kOptimizer;
  const bool is_other = std::any_of(kOthers.begin(), kOthers.end(),
                                    [&](std::string_view word) { return is_numbered(stem, word); });
  return is_other ? TrainerFile::kOther : TrainerFile::kNone;
}

}  // namespace shw
