#include "core/facts/names/weight_kinds.h"

#include "core/facts/names/name_families.h"
#include "core/facts/names/wrapper_marks.h"
#include "core/model/state_names.h"

namespace shw {
namespace {

// True if a number belongs to the module's own name: "bn2" in "layer1.0.bn2.weight". In "0",
// "layers_0" and "layer1" the number counts layers.
bool has_own_number(std::string_view module) {
  const std::size_t letters = module.find_last_not_of("0123456789");
  return letters != std::string_view::npos && letters + 1 != module.size() &&
         module[letters] != '_' && !module.starts_with("layer") && !module.starts_with("block") &&
         !module.starts_with("expert");
}

}  // namespace

bool is_model_weight(const Checkpoint& checkpoint, TensorId tensor) {
  const std::string_view fqn = checkpoint.fqn(tensor);
  const std::size_t ndim = checkpoint.shape(tensor).size();
  return (ndim >= 2 || (ndim == 1 && fqn.ends_with(".weight"))) &&
         fqn.find("bias") == std::string_view::npos && !parse_state_fqn(fqn) &&
         !is_adapter_name(fqn);
}

std::string kind_of_name(std::string_view fqn, std::size_t ndim) {
  const std::size_t dot = fqn.rfind('.');
  const std::size_t before = dot == fqn.npos || dot == 0 ? fqn.npos : fqn.rfind('.', dot - 1);
  const std::string vector = ndim == 1 ? " (1-D)" : "";
  if (before == fqn.npos || !has_own_number(fqn.substr(before + 1, dot - before - 1)))
    return without_numbers(fqn) + vector;
  return without_numbers(fqn.substr(0, before)) + std::string(fqn.substr(before)) + vector;
}

}  // namespace shw
