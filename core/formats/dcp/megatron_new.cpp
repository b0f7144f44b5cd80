#include "core/formats/dcp/megatron_new.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <vector>

#include "core/base/checked.h"
#include "core/base/json.h"
#include "core/formats/common/torch_archive.h"
#include "core/formats/common/torch_item.h"
#include "core/formats/dcp/megatron_files.h"
#include "core/formats/items/items.h"
#include "core/formats/pickle/pickle.h"
#include "core/formats/pickle/pickled_values.h"
#include "core/formats/zip/zip.h"
#include "core/io/read_whole.h"
#include "core/model/state_names.h"

namespace shw {
namespace {

constexpr std::string_view kExtraState = "._extra_state/shard_";
constexpr std::string_view kMarkerText =
    R"({"sharded_backend": "torch_dist", "sharded_backend_version": 1, "common_backend": "torch", "common_backend_version": 1})";
// A module per tensor; a model of Kimi-K2's size has some 50,000.
constexpr std::size_t kMaxExtraStates = 4'000'000;

bool is_digit_at(std::string_view text, std::size_t at) {
  return at < text.size() && text[at] >= '0' && text[at] <= '9';
}

// Sizes of the leading dims that stack layers and experts, derived from the name.
Extents stacked_leading_dims(const OutputTensor& tensor) {
  const std::string_view name = tensor.fqn;
  std::size_t count = 0;
  for (std::string_view part :
       {std::string_view("decoder.layers."), std::string_view(".experts.experts.")}) {
    const std::size_t at = name.find(part);
    if (at != std::string_view::npos && !is_digit_at(name, at + part.size())) ++count;
  }
  count = std::min(count, tensor.shape.size());
  return {tensor.shape.begin(), tensor.shape.begin() + static_cast<std::ptrdiff_t>(count)};
}

// "1.3_2.4" for cell 7 of [2, 4]; "0_1" if nothing is stacked.
std::string shard_text(const Extents& dims, std::int64_t cell) {
  std::string at, of;
  for (std::size_t d = dims.size(); d-- > 0;) {
    at.insert(0, fmt::format("{}{}", d == 0 ? "" : ".", cell % dims[d]));
    of.insert(0, fmt::format("{}{}", d == 0 ? "" : ".", dims[d]));
    cell /= dims[d];
  }
  return dims.empty() ? "0_1" : at + "_" + of;
}

bool is_optimizer_state(const OutputTensor& tensor) {
  return tensor.fqn.starts_with("optimizer.state.");
}

class ExtraStates {
 public:
  explicit ExtraStates(Outputs& outputs) : outputs_(outputs) {}

  Status add_all() {
    for (const OutputTensor& tensor : outputs_.tensors) {
      const std::size_t dot = tensor.fqn.rfind('.');
      if (dot == std::string::npos || is_optimizer_state(tensor)) continue;
      const Extents dims = stacked_leading_dims(tensor);
      SHW_CHECK(add(tensor.fqn.substr(0, dot), dims));
      // Also adds core_attention, a module without weights.
      const std::size_t attention = tensor.fqn.find(".self_attention.");
      if (attention != std::string::npos)
        SHW_CHECK(add(tensor.fqn.substr(0, attention) + ".self_attention.core_attention", dims));
    }
    return {};
  }

 private:
  Status add(const std::string& module, const Extents& dims) {
    if (!modules_.insert(module).second) return {};
    const auto count = volume(dims);
    if (!count || static_cast<std::uint64_t>(*count) > kMaxExtraStates - outputs_.objects.size())
      return fail(ErrorKind::kUnsupported, "has more layers and experts than can be written",
                  Place{.file = {}, .tensor = module});
    for (std::int64_t cell = 0; cell < *count; ++cell) {
      OutputObject object{fmt::format("{}{}{}", module, kExtraState, shard_text(dims, cell))};
      object.plain = "]Na";  // [None]
      outputs_.objects.push_back(std::move(object));
    }
    return {};
  }

  Outputs& outputs_;
  std::set<std::string> modules_;
};

// --- common.pt

using Argument = std::pair<const char*, std::string>;

// Megatron's arguments derived from the config.json next to the source.
std::vector<Argument> arguments_of(const Outputs& outputs) {
  std::vector<Argument> out{{"tensor_model_parallel_size", pickled_int(1)},
                            {"pipeline_model_parallel_size", pickled_int(1)},
                            {"world_size", pickled_int(1)}};
  bool is_untied = false;
  for (const OutputTensor& tensor : outputs.tensors) {
    is_untied = is_untied || tensor.fqn == "output_layer.weight";
    if (tensor.fqn == "embedding.word_embeddings.weight" && !tensor.shape.empty())
      out.emplace_back("padded_vocab_size", pickled_int(tensor.shape.front()));
  }
  out.emplace_back("untie_embeddings_and_output_weights", pickled_bool(is_untied));
  if (outputs.source == nullptr || outputs.source->directory() == nullptr) return out;
  auto source = outputs.source->directory()->open("config.json");
  if (!source) return out;
  auto text = read_whole_text(**source, std::uint64_t{4} << 20);
  if (!text) return out;
  const auto config = parse_json<nlohmann::json>(*text).tree;
  constexpr std::pair<const char*, const char*> kKeys[] = {
      {"num_hidden_layers", "num_layers"},
      {"hidden_size", "hidden_size"},
      {"num_attention_heads", "num_attention_heads"},
      {"num_key_value_heads", "num_query_groups"},
      {"head_dim", "kv_channels"},
      {"intermediate_size", "ffn_hidden_size"},
      {"moe_intermediate_size", "moe_ffn_hidden_size"},
      {"max_position_embeddings", "max_position_embeddings"},
      {"vocab_size", "vocab_size"},
      {"num_nextn_predict_layers", "mtp_num_layers"}};
  for (const auto& [theirs, ours] : kKeys) {
    auto found = config.is_object() ? config.find(theirs) : config.end();
    if (found != config.end() && found->is_number_unsigned() &&
        found->get<std::uint64_t>() < (std::uint64_t{1} << 40))
      out.emplace_back(ours, pickled_int(found->get<std::int64_t>()));
  }
  return out;
}

bool has_gated_weight_halves(const Outputs& outputs) {
  for (const OutputTensor& tensor : outputs.tensors) {
    if (tensor.fqn.ends_with(".linear_fc1.weight_w")) return true;
  }
  return false;
}

bool has_optimizer_states(const Outputs& outputs) {
  return std::any_of(outputs.tensors.begin(), outputs.tensors.end(), is_optimizer_state);
}

// --- the optimizer in common.pt

// Without max_lr and min_lr, which the schedule of the run decides.
std::string pickled_group(const AdamSettings& settings, bool decays, bool is_expert) {
  return "}(" + pickled_key("wd_mult") + pickled_real(decays ? 1 : 0) + pickled_key("lr_mult") +
         pickled_real(1) + pickled_key("is_expert_parallel") + pickled_bool(is_expert) +
         pickled_key("is_decoupled_lr") + pickled_bool(false) + pickled_key("default_config") +
         pickled_bool(true) + pickled_key("bias_correction") + pickled_bool(true) +
         pickled_key("lr") + pickled_real(settings.lr) + pickled_key("betas") +
         pickled_real(settings.beta1) + pickled_real(settings.beta2) + "\x86" + pickled_key("eps") +
         pickled_real(settings.eps) + pickled_key("weight_decay") +
         pickled_real(decays ? settings.weight_decay : 0) + pickled_key("step") +
         pickled_real(settings.step) + "u";
}

}  // namespace

namespace {

std::string pickled_groups(const AdamSettings& settings, const MegatronGroups& groups,
                           bool is_expert) {
  std::string out;
  if (groups.has_decay) out += pickled_group(settings, true, is_expert);
  if (groups.has_no_decay) out += pickled_group(settings, false, is_expert);
  return out;
}

// The dict of one optimizer with these groups.
std::string one_pickled_optimizer(const AdamSettings& settings, const std::string& groups,
                                  const PickledOptimizerOptions& options) {
  const bool is_distributed = options.kind == MegatronOptimizer::kDistributed;
  std::string adam = "}(" + pickled_key("param_groups") + "](" + groups + "e";
  if (options.is_torch_adam && !is_distributed)
    adam += pickled_key("state") + "}(" + pickled_key("common_step") + pickled_real(settings.step) +
            "u";
  adam += "u";
  if (options.kind == MegatronOptimizer::kFloat32) return adam;
  std::string out = "}(" + pickled_key("optimizer") + adam;
  if (is_distributed)
    out += pickled_key("param_state_sharding_type") + pickled_key("fully_reshardable");
  return out + "u";
}

}  // namespace

std::string pickled_optimizer(const AdamSettings& settings,
                              const PickledOptimizerOptions& options) {
  const std::string dense = pickled_groups(settings, options.dense, false),
                    experts = pickled_groups(settings, options.experts, true);
  if (options.is_expert_parallel)
    return "}(" + pickled_int(0) + one_pickled_optimizer(settings, dense, options) +
           pickled_int(1) + one_pickled_optimizer(settings, experts, options) + "u";
  const bool is_distributed = options.kind == MegatronOptimizer::kDistributed;
  return one_pickled_optimizer(settings, is_distributed ? dense + experts : dense, options);
}

namespace {

constexpr std::string_view kTorchAdam = "optimizer.torch_adam/shard_0_1";
constexpr std::string_view kExpertParallel = "optimizer.expert_parallel/shard_0_1";

// Notes in which group a weight is. Layers may be stacked, and the parameter of each is a vector
// still.
void add_group(const OutputTensor& weight, PickledOptimizerOptions& options) {
  const bool is_vector = weight.shape.size() - stacked_leading_dims(weight).size() == 1;
  const bool is_expert =
      options.is_expert_parallel && weight.fqn.find(".experts.") != std::string::npos;
  MegatronGroups& groups = is_expert ? options.experts : options.dense;
  (is_vector || weight.fqn.ends_with(".bias") ? groups.has_no_decay : groups.has_decay) = true;
}

PickledOptimizerOptions optimizer_options(const Outputs& outputs) {
  PickledOptimizerOptions options{MegatronOptimizer::kFloat32, {false, false}, {false, false}};
  for (const OutputObject& object : outputs.objects) {
    options.is_torch_adam = options.is_torch_adam || object.fqn == kTorchAdam;
    options.is_expert_parallel = options.is_expert_parallel || object.fqn == kExpertParallel;
  }
  for (const OutputTensor& tensor : outputs.tensors) {
    if (!is_optimizer_state(tensor)) {
      add_group(tensor, options);
      continue;
    }
    const auto path = parse_state_fqn(tensor.fqn);
    if (path && path->kind == "param") options.kind = MegatronOptimizer::kDistributed;
    if (path && path->kind == "fp32_param") options.kind = MegatronOptimizer::kFloat16;
  }
  if (options.kind == MegatronOptimizer::kDistributed) options.dense = options.experts = {};
  return options;
}

// The pickle of {"args": Namespace, "checkpoint_version": 3.0, "iteration": 0, "content_metadata":
// {...}}, and of "optimizer" where its states are copied with the number of steps.
std::string common_pickle(const Outputs& outputs) {
  std::string pickle = "\x80\x02}(" + pickled_key("args") + "cargparse\nNamespace\n)\x81}(";
  for (const auto& [key, value] : arguments_of(outputs)) pickle += pickled_key(key) + value;
  pickle += "ub" + pickled_key("checkpoint_version") + pickled_real(3);
  const bool has_states = has_optimizer_states(outputs);
  const PickledOptimizerOptions options = optimizer_options(outputs);
  const auto settings =
      has_states && outputs.source != nullptr ? adam_settings(*outputs.source) : std::nullopt;
  if (settings) pickle += pickled_key("optimizer") + pickled_optimizer(*settings, options);
  pickle += pickled_key("iteration") + pickled_int(0) + pickled_key("content_metadata") + "}(";
  pickle += pickled_key("singleton_local_shards") + pickled_bool(has_gated_weight_halves(outputs));
  // Without this key Megatron-core expects distributed states in another layout.
  if (has_states && options.kind == MegatronOptimizer::kDistributed)
    pickle += pickled_key("distrib_optim_sharding_type") + pickled_key("fully_reshardable");
  return pickle + "uu.";
}

Result<Bytes> common_file(const Outputs& outputs) {
  const std::string pickle = common_pickle(outputs);
  HoleSkippingSink sink;
  const TorchArchive archive{.top = "common",
                             .pickle = payload_of(std::as_bytes(std::span(pickle)))};
  SHW_CHECK(write_torch_archive(sink, archive));
  Bytes out(sink.position());
  for (const HoleSkippingSink::Part& part : sink.parts)
    std::memcpy(out.data() + part.offset, part.bytes.data(), part.bytes.size());
  return out;
}

}  // namespace

bool is_megatron_extra_state(std::string_view fqn) {
  return fqn.find(kExtraState) != std::string_view::npos;
}

Result<SmallFiles> complete_megatron(Outputs& outputs) {
  SHW_CHECK(ExtraStates(outputs).add_all());
  const auto marker = std::as_bytes(std::span(kMarkerText));
  SmallFiles files;
  files.emplace_back(kMegatronMarker, Bytes(marker.begin(), marker.end()));
  SHW_TRY(Bytes common, common_file(outputs));
  files.emplace_back(kCommonState, std::move(common));
  return files;
}

}  // namespace shw
