#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/names/float32_names.h"
#include "core/facts/names/layer_numbers.h"
#include "core/facts/reference/model_config.h"
#include "core/facts/states/optimizer_states.h"
#include "core/rules/rules.h"
#include "core/tensor/cast.h"

namespace shw {
namespace {

constexpr std::size_t kEnoughFamilies = 3;

struct FileDtypes {
  std::set<Dtype> floats;
  std::set<std::string> families;
};

// The name without numbers: "model.layers.*.mlp.up_proj.weight". Numbers next to letters stay,
// because they name parts of a model that may have separate dtypes: "text_encoder_2".
std::string family_of(std::string_view fqn) {
  std::string family;
  for (std::size_t begin = 0; begin <= fqn.size();) {
    const std::size_t end = std::min(fqn.find('.', begin), fqn.size());
    const std::string_view part = fqn.substr(begin, end - begin);
    const bool is_number = part.find_first_not_of("0123456789") == part.npos;
    family += (begin == 0 ? "" : ".") + (is_number ? std::string("*") : std::string(part));
    begin = end + 1;
  }
  return family;
}

std::map<FileId, FileDtypes> dtypes_of_files(const Facts& facts) {
  const Checkpoint& c = facts.checkpoint;
  std::map<FileId, FileDtypes> files;
  for (TensorId tensor : each_tensor(facts)) {
    const std::string_view fqn = c.fqn(tensor);
    if (!is_plain_float(c.dtype(tensor)) || c.chunks(tensor).empty()) continue;
    if (is_kept_in_float32(fqn) || parse_state_fqn(fqn)) continue;
    const auto place = c.item(*c.chunks(tensor).begin());
    if (!place || place->file == FileId::kNone) continue;
    FileDtypes& file = files[place->file];
    file.floats.insert(c.dtype(tensor));
    file.families.insert(family_of(fqn));
  }
  return files;
}

// Reports files in which all tensors have another dtype than in the model's other files. A model
// that keeps some modules in more bits does so in every layer.
void find_mixed_files(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  const auto files = dtypes_of_files(facts);
  std::map<Dtype, std::vector<FileId>> by_dtype;
  for (const auto& [id, file] : files) {
    if (file.floats.size() != 1) return;
    by_dtype[*file.floats.begin()].push_back(id);
  }
  if (by_dtype.size() != 2) return;
  auto odd = by_dtype.begin(), usual = std::next(odd);
  if (odd->second.size() > usual->second.size()) std::swap(odd, usual);
  const bool is_tie = odd->second.size() == usual->second.size();
  std::set<std::string> elsewhere;
  for (FileId id : usual->second)
    elsewhere.insert(files.at(id).families.begin(), files.at(id).families.end());
  std::vector<std::string> shared, paths;
  for (FileId id : odd->second) {
    paths.push_back(c.file(id).path);
    std::set_intersection(files.at(id).families.begin(), files.at(id).families.end(),
                          elsewhere.begin(), elsewhere.end(), std::back_inserter(shared));
  }
  if (shared.size() < kEnoughFamilies) return;
  Finding finding{.rule = std::string(kMixedSaves.id), .severity = Severity::kWarning};
  const bool is_one = paths.size() == 1;
  finding.cause = fmt::format(
      "{} {} {} throughout, and the other {} {}, though they hold the same tensors of other layers "
      "({}). {} from another save of the model, or {} converted separately. Loaders accept the "
      "mixture without an error.",
      short_list_text(paths), is_one ? "is" : "are", name(odd->first),
      plural(usual->second.size(), "file"), name(usual->first), short_list_text(shared),
      is_tie   ? "One side comes"
      : is_one ? "It comes"
               : "They come",
      is_one || is_tie ? "was" : "were");
  if (is_tie)
    for (FileId id : usual->second) paths.push_back(c.file(id).path);
  finding.evidence = {{"families", capped(shared)}, {"count", count_of(paths.size())}};
  finding.subjects = std::move(paths);
  findings.push_back(std::move(finding));
}

struct LayerDtypes {
  std::set<Dtype> floats;
  std::set<std::string> parts;  // ".mlp.up_proj.weight"
};
using Layers = std::map<std::int64_t, LayerDtypes>;

// Keyed by the prefix before the layer's number ("model.layers.").
std::map<std::string, Layers> dtypes_of_layers(const Facts& facts) {
  const Checkpoint& c = facts.checkpoint;
  std::map<std::string, Layers> stacks;
  for (TensorId tensor : each_tensor(facts)) {
    const std::string_view fqn = c.fqn(tensor);
    if (!is_plain_float(c.dtype(tensor)) || is_kept_in_float32(fqn) || parse_state_fqn(fqn))
      continue;
    const auto name = layer_name_of(fqn);
    if (!name) continue;
    LayerDtypes& layer = stacks[name->before][name->number];
    layer.floats.insert(c.dtype(tensor));
    layer.parts.insert(name->after);
  }
  return stacks;
}

// The few layers whose tensors all have another dtype than `usual`, which all other layers have;
// empty if some layer has several dtypes.
std::vector<std::int64_t> layers_of_other_dtype(const Layers& layers, Dtype usual) {
  constexpr std::size_t kMinLayers = 4;
  std::vector<std::int64_t> odd;
  for (const auto& [number, layer] : layers) {
    if (layer.floats.size() != 1) return {};
    const bool is_usual = *layer.floats.begin() == usual;
    if (!is_usual && layer.parts.size() >= kEnoughFamilies) odd.push_back(number);
  }
  const bool are_few = layers.size() >= kMinLayers && odd.size() * 4 <= layers.size();
  return are_few ? odd : std::vector<std::int64_t>();
}

// Reports single layers in another dtype than all others and config.json have.
void find_mixed_layers(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  if (c.directory() == nullptr) return;
  const auto config = read_model_config(*c.directory());
  if (!config || !*config || (*config)->packs_weights) return;
  const auto usual = dtype_from_torch((*config)->dtype);
  if (!usual) return;
  for (const auto& [before, layers] : dtypes_of_layers(facts)) {
    const std::vector<std::int64_t> odd = layers_of_other_dtype(layers, *usual);
    if (odd.empty()) continue;
    Finding finding{.rule = std::string(kMixedSaves.id), .severity = Severity::kWarning};
    std::vector<std::string> names;
    for (const std::int64_t number : odd) {
      names.push_back(before + std::to_string(number));
      for (const std::string& part : layers.at(number).parts)
        finding.subjects.push_back(names.back() + part);
    }
    finding.cause = fmt::format(
        "All tensors of {} are {}, and those of the other {} are {}, as config.json says. {} "
        "written by another save of the model, or converted separately. Loaders accept the mixture "
        "without an error.",
        short_list_text(names), name(*layers.at(odd.front()).floats.begin()),
        plural(layers.size() - odd.size(), "layer"), name(*usual),
        odd.size() == 1 ? "The layer was" : "These layers were");
    finding.evidence = {{"count", count_of(odd.size())}};
    findings.push_back(std::move(finding));
  }
}

void find_mixed_saves(const Facts& facts, std::vector<Finding>& findings) {
  if (!facts.checkpoint.format().traits.has_one_piece_per_tensor) return;
  const std::size_t before = findings.size();
  find_mixed_files(facts, findings);
  if (findings.size() == before) find_mixed_layers(facts, findings);
}

}  // namespace

const Rule kMixedSaves = {
    .id = "mixed-saves",
    .depth = Depth::kMetadata,
    .title = "Files of different saves are mixed",
    .teaches =
        "Megatron and DeepSpeed write one file per rank, and each file records the step that it "
        "was saved at. Here the steps differ, or one part of the model has a different dtype from "
        "the same tensors in the other parts. Usual causes: some files were copied from another "
        "folder, or a save was killed while it overwrote an older one. Every file loads, so the "
        "model becomes a mixture of two saves without an error.",
    .lesson = {.drawing = R"(
  mp_rank_00_000   iteration 100
  mp_rank_01_000   iteration 100
  mp_rank_01_001   iteration 90      of another save
)",
               .remedy = "Copy the files that differ again from the original of the others, or use "
                         "a step whose files agree."},
    .words = {.text = "loads, silently wrong", .as_warning = "may come from another save"},
    .run = find_mixed_saves,
};

}  // namespace shw
