#include "core/verbs/mapped_view.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "core/base/words.h"
#include "core/combine/shifted_norms.h"
#include "core/facts/values/computed_tensors.h"
#include "core/maps/built_in_maps.h"
#include "core/maps/choose_map.h"
#include "core/maps/map_of_pair.h"
#include "core/transform/target_view.h"
#include "core/verbs/left_out_notes.h"

namespace shw::verbs {
namespace {

// kUsage if the model is unknown, because some names depend on it.
Status check_model_is_known(const MappedSteps& mapped, const ModelFacts& facts) {
  if (mapped.to != "hf" || mapped.from == "hf" || !facts.model_type.empty()) return {};
  return fail(ErrorKind::kUsage,
              "no file next to the checkpoint says which Hugging Face model this is, and names "
              "differ between models",
              {},
              "give its config.json with --config FOLDER, or set it: --set model=llama (mixtral, "
              "phi3 and others use different names)");
}

// Facts from --config, --set and the files next to the checkpoint.
Result<ModelFacts> facts_from_options(const Checkpoint& checkpoint, const MapOptions& mapping) {
  ModelFacts facts = facts_in_folder(checkpoint);
  SHW_CHECK(add_map_options(mapping, facts));
  return facts;
}

const ModelMap* built_in_map_to(const std::string& world) {
  for (const ModelMap& map : built_in_maps()) {
    if (map.to == world) return &map;
  }
  return nullptr;
}

// Adds the forms and the padding of `like`, a checkpoint of program `to`.
Result<ModelFacts> facts_from_example_checkpoint(const Checkpoint& checkpoint,
                                                 const std::string& to, const ModelMap* map,
                                                 const Checkpoint& like, ModelFacts facts) {
  const ModelMap* last = map == nullptr ? built_in_map_to(to) : map;
  if (last == nullptr || last->to != to) return facts;
  std::vector<MapTensor> shapes = tensor_names_and_shapes(checkpoint);
  if (map == nullptr && naming_scheme_of(shapes, facts) != last->from) {
    SHW_TRY(MappedSteps first, mapped_steps(checkpoint, nullptr, last->from, facts, {}));
    shapes = std::move(first.tensors);
  }
  SHW_TRY(const BoundMap bound,
          bind_map(*last, MapDirection::kBack, tensor_names_and_shapes(like), facts));
  return facts_from_other_side(*last, shapes, like, bound, facts);
}

// True for models that multiply by 1 + weight.
bool multiplies_by_one_plus_weight(const ModelFacts& facts) {
  return facts.model_type.starts_with("gemma") || facts.model_type == "qwen3_next";
}

// True for models whose rotary embedding turns neighbours, and not elements that are half a head
// apart (transformers 5.24).
bool are_rotary_pairs_neighbours(const ModelFacts& facts) {
  constexpr std::string_view kModels[] = {"cohere", "cohere2", "ernie4_5", "ernie4_5_moe",
                                          "glm",    "glm4",    "helium"};
  return std::find(std::begin(kModels), std::end(kModels), facts.model_type) != std::end(kModels);
}

}  // namespace

bool is_naming_scheme(const std::string& word) {
  const std::vector<std::string> worlds = naming_schemes();
  return std::find(worlds.begin(), worlds.end(), word) != worlds.end();
}

Result<MappedByOptions> map_by_options(const Checkpoint& checkpoint, const std::string& to,
                                       const MapOptions& mapping,
                                       const ConversionExclusions& leave_out,
                                       const Checkpoint* like, StatePlaces places) {
  SHW_TRY(ModelFacts facts, facts_from_options(checkpoint, mapping));
  ModelMap named;
  const ModelMap* map = nullptr;
  if (!mapping.map.empty()) {
    SHW_TRY(named, map_named(mapping.map));
    map = &named;
  }
  if (like != nullptr) {
    SHW_TRY(facts, facts_from_example_checkpoint(checkpoint, to, map, *like, std::move(facts)));
  }
  MappedByOptions made;
  made.names_world = map != nullptr ? to == map->from || to == map->to : is_naming_scheme(to);
  SHW_TRY(made.steps, mapped_steps(checkpoint, map, made.names_world ? to : std::string(), facts,
                                   leave_out, places));
  SHW_CHECK(check_model_is_known(made.steps, facts));
  made.facts = std::move(facts);
  return made;
}

Status check_norm_convention_for_hf(const Checkpoint& checkpoint, const MappedByOptions& made) {
  const auto centred = made.facts.args.find("apply_layernorm_1p");
  if (!multiplies_by_one_plus_weight(made.facts) || made.steps.to != "hf" ||
      centred == made.facts.args.end() || centred->second != 0)
    return {};
  for (TensorId tensor : checkpoint.tensors()) {
    if (!is_norm_weight_or_master(checkpoint.fqn(tensor)) ||
        is_rounded_in_computing(checkpoint, tensor))
      continue;
    return fail(
        ErrorKind::kUnsupported,
        fmt::format("is a norm that multiplies by its weight (apply_layernorm_1p is off in the "
                    "arguments that Megatron saved), but a norm of {} multiplies by 1 + weight",
                    made.facts.model_type),
        Place{.file = {}, .tensor = std::string(checkpoint.fqn(tensor))},
        "subtract the 1: open PATH/@norms:-1 instead of PATH");
  }
  return {};
}

namespace {

void add_state_notes(const MappedSteps& mapped, std::vector<std::string>& notes) {
  std::vector<std::string> kinds;
  for (const auto& [kind, count] : mapped.states)
    kinds.push_back(fmt::format("{} of {}", kind, plural(count, "tensor")));
  if (!kinds.empty()) notes.push_back("optimizer states: " + short_list_text(kinds, 8));
  if (mapped.created_master_count != 0)
    notes.push_back(fmt::format("master weights of {} are the weights in float32",
                                plural(mapped.created_master_count, "tensor")));
}

}  // namespace

std::vector<std::string> mapping_notes(const MappedByOptions& made) {
  const MappedSteps& mapped = made.steps;
  std::vector<std::string> notes;
  for (const std::string& leg : mapped.maps)
    notes.push_back(fmt::format("from {} to {} by the map {}", mapped.from, mapped.to, leg));
  add_state_notes(mapped, notes);
  add_left_out_notes(mapped, notes);
  if (multiplies_by_one_plus_weight(made.facts) && mapped.from == "hf" && mapped.to == "torch_dist")
    notes.push_back(
        "norms multiply by 1 + weight, as in the source: use --apply-layernorm-1p in Megatron");
  if (are_rotary_pairs_neighbours(made.facts) && mapped.from == "hf" &&
      (mapped.to == "torch_dist" || mapped.to == "fsdp_dtensor"))
    notes.push_back(
        "rotary pairs are neighbours, as in the source: use --rotary-interleaved in Megatron");
  return notes;
}

Result<MappedView> mapped_view(const std::shared_ptr<const Checkpoint>& checkpoint,
                               const std::string& to, const MapOptions& mapping, Progress* progress,
                               const Checkpoint* like, StatePlaces places) {
  if (checkpoint->directory() == nullptr)
    return fail(ErrorKind::kUsage, "the checkpoint has no directory");
  if (mapping.map.empty() && !is_naming_scheme(to))
    return fail(ErrorKind::kUsage, "\"" + to + "\" is not a known target program", {},
                "It is one of " + short_list_text(naming_schemes(), 8) + ".");
  if (mapping.map.empty()) {
    SHW_TRY(const ModelFacts facts, facts_from_options(*checkpoint, mapping));
    if (naming_scheme_of(tensor_names_and_shapes(*checkpoint), facts) == to)
      return MappedView{checkpoint, {fmt::format("its names are already those of {}", to)}};
  }
  SHW_TRY(const MappedByOptions made, map_by_options(*checkpoint, to, mapping, {}, like, places));
  SHW_CHECK(check_norm_convention_for_hf(*checkpoint, made));
  SHW_TRY(TargetState all, apply_steps(target_state_of(checkpoint), made.steps.steps, progress));
  MappedView view;
  SHW_TRY(view.checkpoint,
          target_view(std::make_shared<const TargetState>(std::move(all)), progress));
  view.notes = mapping_notes(made);
  return view;
}

}  // namespace shw::verbs
