#include "core/verbs/mapped_view.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/base/words.h"
#include "core/maps/built_in_maps.h"
#include "core/transform/target_view.h"

namespace shw::verbs {
namespace {

// Which model it is decides names that the tensors alone leave open.
Status check_model_is_known(const MappedSteps& mapped, const ModelFacts& facts) {
  if (mapped.to != "hf" || mapped.from == "hf" || !facts.model_type.empty()) return {};
  return fail(ErrorKind::kUsage,
              "which Hugging Face model this is stands nowhere beside the checkpoint, and names "
              "differ between them",
              {},
              "give its config.json with --config FOLDER, or say it: --set model=llama (mixtral, "
              "phi3 and others have names of their own)");
}

// What --config and --set say, and what lies beside the checkpoint.
Result<ModelFacts> facts_said(const Checkpoint& checkpoint, const MapOptions& mapping) {
  ModelFacts facts = facts_beside(checkpoint);
  SHW_CHECK(add_map_options(mapping, facts));
  return facts;
}

}  // namespace

bool names_a_program(const std::string& word) {
  const std::vector<std::string> worlds = known_worlds();
  return std::find(worlds.begin(), worlds.end(), word) != worlds.end();
}

Result<MappedByOptions> mapped_by(const Checkpoint& checkpoint, const std::string& to,
                                  const MapOptions& mapping, const Patterns& leave_out) {
  SHW_TRY(ModelFacts facts, facts_said(checkpoint, mapping));
  ModelMap named;
  const ModelMap* map = nullptr;
  if (!mapping.map.empty()) {
    SHW_TRY(named, map_named(mapping.map));
    map = &named;
  }
  MappedByOptions made;
  made.names_world = map != nullptr ? to == map->from || to == map->to : names_a_program(to);
  SHW_TRY(made.steps,
          mapped_steps(checkpoint, map, made.names_world ? to : std::string(), facts, leave_out));
  SHW_CHECK(check_model_is_known(made.steps, facts));
  return made;
}

std::vector<std::string> notes_on(const MappedSteps& mapped) {
  std::vector<std::string> notes;
  for (const std::string& leg : mapped.maps)
    notes.push_back(fmt::format("from {} to {} by the map {}", mapped.from, mapped.to, leg));
  if (!mapped.left_out.empty())
    notes.push_back(fmt::format("left out: {} ({})", plural(mapped.left_out.size(), "tensor"),
                                some_of(mapped.left_out)));
  return notes;
}

Result<MappedView> mapped_view(const std::shared_ptr<const Checkpoint>& checkpoint,
                               const std::string& to, const MapOptions& mapping,
                               Progress* progress) {
  if (checkpoint->directory() == nullptr)
    return fail(ErrorKind::kUsage, "the checkpoint lies in no directory");
  if (mapping.map.empty() && !names_a_program(to))
    return fail(ErrorKind::kUsage, "\"" + to + "\" is no program of a map", {},
                "It is one of " + some_of(known_worlds(), 8) + ".");
  SHW_TRY(const MappedByOptions made, mapped_by(*checkpoint, to, mapping, {}));
  SHW_TRY(TargetState all, apply_steps(target_state_of(checkpoint), made.steps.steps, progress));
  MappedView view;
  SHW_TRY(view.checkpoint,
          target_view(std::make_shared<const TargetState>(std::move(all)), progress));
  view.notes = notes_on(made.steps);
  return view;
}

}  // namespace shw::verbs
