#include "core/model/state_names.h"

#include <algorithm>
#include <array>

#include "core/base/parse_text.h"

namespace shw {
namespace {

constexpr std::array<std::string_view, 6> kMoments{"exp_avg",        "exp_avg_sq", "exp_inf",
                                                   "max_exp_avg_sq", "exp_avgs",   "exp_avg_sqs"};
constexpr std::array<std::string_view, 10> kMasters{
    "master_param", "master_params", "master",         "master_weight", "master_weights",
    "fp32_param",   "main_param",    "fp32_from_fp16", "float32_param", "fp32"};

constexpr std::string_view kMegatronMaster = "param";

bool is_wrapper(std::string_view part) {
  return part == "_orig_mod" || part == "_fsdp_wrapped_module" ||
         part == "_checkpoint_wrapped_module" || part == "_forward_module";
}

// Prefixes before a parameter's own name: "model", "module", "model0", "model_pp1".
bool is_root(std::string_view part) {
  if (part == "model" || part == "module") return true;
  if (!part.starts_with("model")) return false;
  part.remove_prefix(5);
  if (part.starts_with("_pp")) part.remove_prefix(3);
  return !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string_view consume_name_part(std::string_view& rest) {
  std::size_t dot = rest.find('.');
  std::string_view part = rest.substr(0, dot);
  rest = dot == std::string_view::npos ? std::string_view{} : rest.substr(dot + 1);
  return part;
}

bool is_known_kind(std::string_view kind) {
  return is_one_of(kind, kMoments) || is_one_of(kind, kMasters) || kind == "momentum_buffer";
}

// Names of a module's own tensors: a dict "state" of a model has them (demucs), an optimizer's not.
bool is_of_module(std::string_view kind) {
  return kind.starts_with("weight") || kind.starts_with("bias") || kind.starts_with("running_") ||
         kind == "num_batches_tracked";
}

// "optimizer.state.param.decoder.layers.0.weight" is a master; "optimizer.state.param.exp_avg" is
// the moment of a parameter called "param".
bool is_megatron_master(std::string_view first, std::string_view after) {
  const std::string_view last = after.substr(after.rfind('.') + 1);
  return first == kMegatronMaster && !is_known_kind(last) && last != "step";
}

// In "optimizer.layers.0.weight.exp_avg", without the part "state", the kind identifies a state.
std::optional<StatePath> state_by_kind(std::string_view fqn) {
  std::string_view first = consume_name_part(fqn);
  std::size_t dot = fqn.rfind('.');
  if (first.find("optim") == std::string_view::npos || dot == std::string_view::npos)
    return std::nullopt;
  StatePath path{fqn.substr(0, dot), fqn.substr(dot + 1)};
  const bool known = is_known_kind(path.kind);
  // Megatron's gradient buckets ("distributed.dp_group_idx_0. ...") belong to no parameter.
  return known && !path.key.starts_with("distributed.") ? std::optional(path) : std::nullopt;
}

}  // namespace

std::optional<StatePath> parse_state_fqn(std::string_view fqn) {
  std::string_view rest = fqn;
  bool of_optimizer = true;  // true while all parts so far may name an optimizer
  for (int depth = 0; depth < 4 && !rest.empty(); ++depth) {
    std::string_view part = consume_name_part(rest);
    if (part == "state") {
      std::string_view after = rest;
      std::string_view first = consume_name_part(after);
      if (after.empty()) return std::nullopt;
      if (is_one_of(first, kMoments) || is_one_of(first, kMasters)) return StatePath{after, first};
      if (is_megatron_master(first, after)) return StatePath{after, first};
      std::size_t dot = rest.rfind('.');
      const StatePath path{rest.substr(0, dot), rest.substr(dot + 1)};
      // One of several optimizers may use its own name: "muon.state.<fqn>.momentum_buffer".
      if ((of_optimizer && !is_of_module(path.kind)) || is_known_kind(path.kind)) return path;
    }
    of_optimizer = (of_optimizer && depth > 0) || part.find("optim") != std::string_view::npos;
  }
  return state_by_kind(fqn);
}

StateRole role_of_kind(std::string_view kind) {
  if (is_one_of(kind, kMoments)) return StateRole::kMoment;
  if (is_one_of(kind, kMasters) || kind == kMegatronMaster) return StateRole::kMaster;
  return StateRole::kOther;
}

std::string unwrapped_name(std::string_view fqn) {
  std::string bare;
  while (!fqn.empty()) {
    std::string_view part = consume_name_part(fqn);
    if (is_wrapper(part) || (bare.empty() && is_root(part) && !fqn.empty())) continue;
    if (!bare.empty()) bare += '.';
    bare += part;
  }
  return bare;
}

}  // namespace shw
