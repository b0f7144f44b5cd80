#include "core/verbs/map_convert.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "core/base/words.h"
#include "core/formats/complete.h"
#include "core/io/read_whole.h"
#include "core/io/store.h"
#include "core/maps/built_in_maps.h"
#include "core/maps/created_settings.h"
#include "core/repair/plan/plan_fingerprint.h"
#include "core/repair/plan/target_of_plan.h"

namespace shw::verbs {
namespace {

constexpr std::uint64_t kMappedShardBytes = 5'000'000'000;
constexpr std::uint64_t kMaxModelFile = std::uint64_t{64} << 20;

// Splits tensors that stack layers or experts into one chunk per layer; others get one chunk.
void add_tiles(const std::vector<MapTensor>& tensors, std::vector<Step>& steps) {
  std::map<Extents, Patterns> stacked;
  Patterns whole_ones;
  for (const MapTensor& tensor : tensors) {
    if (tensor.shape.size() > 2 && tensor.shape.front() > 1)
      stacked[tensor.shape].push_back(tensor.fqn);
    else
      whole_ones.push_back(tensor.fqn);
  }
  if (!whole_ones.empty()) steps.emplace_back(RetileStep{std::move(whole_ones), {}});
  for (auto& [shape, names] : stacked) {
    RetileStep step{std::move(names), {}};
    for (std::int64_t i = 0; i < shape.front(); ++i) {
      Box box = whole(shape);
      box.offsets.front() = i;
      box.sizes.front() = 1;
      step.tiles.push_back({std::move(box), 0});
    }
    steps.emplace_back(std::move(step));
  }
}

bool is_model_file(const std::string& name) {
  constexpr std::string_view kNames[] = {"config.json",
                                         "generation_config.json",
                                         "special_tokens_map.json",
                                         "added_tokens.json",
                                         "vocab.json",
                                         "merges.txt",
                                         "chat_template.json",
                                         "chat_template.jinja",
                                         "tokenizer.json",
                                         "tokenizer_config.json",
                                         "tokenizer.model",
                                         "vocab.txt",
                                         "spiece.model",
                                         "preprocessor_config.json"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

}  // namespace

std::string format_of_naming_scheme(const std::string& world) {
  if (world == "hf") return "safetensors";
  if (world == kTrainerOptimizer) return "torch";
  const Format* const format = format_named(world);
  return std::string(format == nullptr ? "dcp" : format->name);
}

bool needs_map(const VerbOptions& said, const MapOptions& mapping) {
  return !mapping.map.empty() || is_naming_scheme(said.to);
}

Status check_options_of_map(const VerbOptions& said) {
  const std::pair<bool, const char*> unread[] = {{!said.dtype.empty(), "--dtype"},
                                                 {!said.strip.empty(), "--strip"},
                                                 {!said.rename.empty(), "--rename"},
                                                 {!said.only.empty(), "words that choose tensors"}};
  for (const auto& [is_given, name] : unread) {
    if (!is_given) continue;
    return fail(ErrorKind::kUsage,
                fmt::format("{} cannot be combined with a conversion to another program", name), {},
                "convert first, then run convert again on the result");
  }
  return {};
}

namespace {

// Adds what the optimizer asks for besides its moments. Returns what became of the number of steps,
// without which a trainer scales its first updates wrongly.
std::string add_settings(const Checkpoint& checkpoint, const Format& written,
                         const MappedSteps& mapped, std::vector<Step>& steps) {
  const auto adam = adam_settings(checkpoint);
  std::vector<Step> created;
  if (adam) created = create_settings(mapped, *adam);
  const bool is_in_file = adam && completes_optimizer(written);
  if (created.empty() && !is_in_file)
    return "the number of steps and the parameter groups of the optimizer are left out; a trainer "
           "that loads the states needs them";
  std::move(created.begin(), created.end(), std::back_inserter(steps));
  return fmt::format("{} the optimizer's {:g} steps, and betas, eps, lr and weight decay of {}",
                     is_in_file ? "common.pt has" : "each parameter gets", adam->step,
                     adam->weight_decay == 0 ? "the source's first group"
                                             : "the source's first group that has weight decay");
}

}  // namespace

Result<ConvertPlan> plan_mapped(const Opened& opened, const VerbOptions& said,
                                const MapOptions& mapping) {
  SHW_CHECK(check_options_of_map(said));
  const Checkpoint& checkpoint = *opened.checkpoint;
  SHW_TRY(MappedByOptions made,
          map_by_options(checkpoint, said.to, mapping, {said.leave_out, said.weights_only}));
  SHW_CHECK(check_norm_convention_for_hf(checkpoint, made));
  std::vector<std::string> notes = mapping_notes(made);
  MappedSteps& mapped = made.steps;
  ConvertPlan out;
  Plan& plan = out.plan;
  plan = empty_plan_for(opened);
  plan.steps = std::move(mapped.steps);
  plan.weights_only = true;
  plan.format = made.names_world || said.to.empty() ? format_of_naming_scheme(mapped.to) : said.to;
  SHW_TRY(const Format* format, format_to_write(plan.format));
  if (format->traits.has_one_piece_per_tensor) {
    plan.shard_bytes = said.shard_bytes == 0 ? kMappedShardBytes : said.shard_bytes;
  } else {
    add_tiles(mapped.tensors, plan.steps);
  }
  if (!mapped.states.empty())
    notes.push_back(add_settings(checkpoint, *format, mapped, plan.steps));
  out.notes = std::move(notes);
  return out;
}

Result<std::vector<std::string>> copy_model_files(const MapOptions& mapping,
                                                  const std::string& output) {
  std::vector<std::string> copied;
  const bool is_file = mapping.config.ends_with(".json");
  const std::string folder =
      is_file
          ? mapping.config.substr(
                0, mapping.config.rfind('/') == std::string::npos ? 0 : mapping.config.rfind('/'))
          : mapping.config;
  SHW_TRY(auto from, open_directory(folder.empty() ? "." : folder));
  SHW_TRY(auto to, posix_store().edit_folder(output));
  SHW_TRY(auto there, from->list(100'000));
  for (const Entry& entry : there) {
    if (entry.kind != EntryKind::kFile || !is_model_file(entry.path) || entry.size > kMaxModelFile)
      continue;
    SHW_TRY(auto source, from->open(entry.path));
    SHW_TRY(std::string text, read_whole_text(*source, kMaxModelFile));
    // Replaces the source's config.json, which was copied before, by that of --config.
    const std::string fresh = entry.path + ".new";
    SHW_CHECK(write_text(*to, fresh, text));
    SHW_CHECK(to->rename(fresh, entry.path));
    copied.push_back(entry.path);
  }
  SHW_CHECK(to->sync());
  return copied;
}

}  // namespace shw::verbs
