#include "core/formats/module_list.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "core/formats/folder_kind.h"
#include "core/formats/small_json.h"
#include "core/model/builder.h"
#include "core/tensor/shape.h"

namespace shw {
namespace {

constexpr std::string_view kModuleList = "modules.json", kRouterList = "router_config.json";
constexpr std::size_t kMaxModules = 256;

// Files and tensors that sentence-transformers requires for a type of module.
struct ModuleKind {
  std::string_view type;
  bool has_weights = false;
  std::string_view config = {};
};
constexpr auto kModuleKinds = std::to_array<ModuleKind>({
    {"Transformer", true},
    {"MLMTransformer", true},
    {"CLIPModel", true},
    {"Dense", true, "config.json"},
    {"LayerNorm", true, "config.json"},
    {"WeightedLayerPooling", true, "config.json"},
    {"SparseAutoEncoder", true, "config.json"},
    {"CNN", true, "cnn_config.json"},
    {"LSTM", true, "lstm_config.json"},
    {"StaticEmbedding", true},
    {"Pooling", false, "config.json"},
    {"SpladePooling", false, "config.json"},
    {"Dropout", false, "config.json"},
    {"BoW", false, "config.json"},
    {"WordWeights", false, "config.json"},
});

// A tensor of a module type, and the keys in config.json that give its extents.
struct ConfiguredShape {
  std::string_view type, tensor;
  std::array<const char*, 2> extents;  // null: no such dimension
};
constexpr auto kConfiguredShapes = std::to_array<ConfiguredShape>({
    {"Dense", "linear.weight", {"out_features", "in_features"}},
    {"Dense", "linear.bias", {"out_features", nullptr}},
    {"LayerNorm", "norm.weight", {"dimension", nullptr}},
    {"LayerNorm", "norm.bias", {"dimension", nullptr}},
});

std::string text_in(const nlohmann::json& object, const char* key) {
  if (!object.is_object()) return {};
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// "Dense" for "sentence_transformers.models.Dense".
std::string class_of(const std::string& path) {
  return path.substr(path.rfind('.') + 1);
}

void add_listed(ListedModule module, std::vector<ListedModule>& modules) {
  while (module.folder.ends_with('/')) module.folder.pop_back();
  const bool is_safe = module.folder.empty() || is_safe_relative_path(module.folder);
  if (is_safe && modules.size() < kMaxModules) modules.push_back(std::move(module));
}

// Adds the branches of a Router, which have subfolders: "query_0_StaticEmbedding".
void add_router_branches(const DirectoryContents& look, const std::string& folder,
                         std::vector<ListedModule>& modules) {
  const std::string before = folder.empty() ? "" : folder + "/";
  const std::string list = before + std::string(kRouterList);
  const nlohmann::json json = read_small_json(look, list);
  const auto types = json.is_object() ? json.find("types") : json.end();
  if (types == json.end() || !types->is_object()) return;
  for (const auto& [name, type] : types->items()) {
    if (type.is_string() && !name.empty())
      add_listed({before + name, class_of(type.get<std::string>()), list}, modules);
  }
}

const ModuleKind* kind_of_module(const std::string& type) {
  const auto found = std::ranges::find(kModuleKinds, type, &ModuleKind::type);
  return found == kModuleKinds.end() ? nullptr : &*found;
}

// Prefix of tensor names: "0_Router.query_0_Dense." for the folder "0_Router/query_0_Dense".
std::string prefix_of_folder(std::string folder) {
  std::ranges::replace(folder, '/', '.');
  return folder + ".";
}

bool has_tensors_of(const Checkpoint& c, const std::string& prefix) {
  for (TensorId tensor : c.tensors()) {
    if (c.fqn(tensor).starts_with(prefix)) return true;
  }
  return false;
}

std::optional<Finding> missing_files(const ListedModule& module, const DirectoryContents& look,
                                     const std::set<std::string>& with_weights) {
  const ModuleKind* kind = kind_of_module(module.type);
  if (kind == nullptr || module.folder.empty()) return std::nullopt;
  const std::string config = fmt::format("{}/{}", module.folder, kind->config);
  const bool lacks_weights = kind->has_weights && !with_weights.contains(module.folder);
  const bool lacks_config = !kind->config.empty() && look.entry(config).kind == EntryKind::kMissing;
  if (!lacks_weights && !lacks_config) return std::nullopt;
  const std::string_view lacking = !lacks_weights ? kind->config
                                   : lacks_config ? "file"
                                                  : "weights";
  Finding finding{.rule = "config-announces", .severity = Severity::kError};
  finding.cause = fmt::format(
      "{} names {}, a module of type {}, but that folder has no {}. sentence-transformers fails "
      "when it loads the module.",
      module.list, module.folder, module.type, lacking);
  finding.subjects = {module.folder};
  finding.evidence = {{"key", module.list}, {"count", std::int64_t{1}}};
  return finding;
}

// nullopt if config.json lacks one of the extents.
std::optional<Extents> configured_extents(const nlohmann::json& config,
                                          const ConfiguredShape& shape) {
  Extents extents;
  for (const char* key : shape.extents) {
    if (key == nullptr) continue;
    const auto found = config.is_object() ? config.find(key) : config.end();
    if (found == config.end() || !found->is_number_unsigned() ||
        found->get<std::uint64_t>() > std::uint64_t{1} << 40)
      return std::nullopt;
    extents.push_back(found->get<std::int64_t>());
  }
  return extents;
}

std::vector<Finding> mismatched_shapes(const ListedModule& module, const DirectoryContents& look,
                                       const Checkpoint& c) {
  std::vector<Finding> findings;
  const std::string path = module.folder + "/config.json";
  std::optional<nlohmann::json> config;
  for (const ConfiguredShape& shape : kConfiguredShapes) {
    if (shape.type != module.type || module.folder.empty()) continue;
    const std::string fqn = prefix_of_folder(module.folder) + std::string(shape.tensor);
    const auto tensor = c.find(fqn);
    if (!tensor) continue;
    if (!config) config = read_small_json(look, path);
    const auto extents = configured_extents(*config, shape);
    if (!extents || same(*extents, c.shape(*tensor))) continue;
    Finding finding{.rule = "config-shape", .severity = Severity::kError};
    finding.cause = fmt::format(
        "{} is {}, and {} makes it {}. sentence-transformers fails with \"size mismatch\".", fqn,
        to_text(c.shape(*tensor)), path, to_text(*extents));
    finding.subjects = {fqn};
    finding.evidence = {
        {"saved", copy_of(c.shape(*tensor))}, {"expected", *extents}, {"count", std::int64_t{1}}};
    findings.push_back(std::move(finding));
  }
  return findings;
}

// True if pooling makes one vector of the transformer's width: "pooling_mode": "mean", or one of
// the older flags "pooling_mode_cls_token".
bool is_single_mode_pooling(const nlohmann::json& config) {
  if (!config.is_object()) return false;
  std::size_t modes = 0;
  for (const auto& [key, value] : config.items()) {
    if (key == "pooling_mode") {
      modes += value.is_string() && value.get<std::string>().find('+') == std::string::npos ? 1 : 2;
    } else if (key.starts_with("pooling_mode_")) {
      modes += value.is_boolean() && value.get<bool>() ? 1 : 0;
    }
  }
  return modes == 1;
}

std::optional<std::int64_t> size_in(const nlohmann::json& config,
                                    std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const auto found = config.is_object() ? config.find(key) : config.end();
    if (found != config.end() && found->is_number_unsigned() &&
        found->get<std::uint64_t>() <= std::uint64_t{1} << 40)
      return found->get<std::int64_t>();
  }
  return std::nullopt;
}

// Compares the width of a transformer at the top with the pooling after it, and its own width with
// that of a Dense after it if pooling does not widen it.
std::vector<Finding> mismatched_widths(const std::vector<ListedModule>& listed,
                                       const DirectoryContents& look) {
  const auto width = size_in(read_small_json(look, "config.json"), {"hidden_size", "dim"});
  if (!width || listed.empty() || listed.front().type != "Transformer" ||
      !listed.front().folder.empty())
    return {};
  const auto finding_of = [](const ListedModule& module, const char* key, std::int64_t said,
                             std::int64_t given, std::string_view from, std::string_view then) {
    Finding finding{.rule = "config-shape", .severity = Severity::kError};
    finding.cause = fmt::format("{}/config.json says {} {}, and {} gives {}. {}", module.folder,
                                key, said, from, given, then);
    finding.subjects = {module.folder};
    finding.evidence = {
        {"key", std::string(key)}, {"said", said}, {"saved", given}, {"count", std::int64_t{1}}};
    return finding;
  };
  std::vector<Finding> findings;
  std::optional<std::int64_t> pooled;
  for (std::size_t i = 1; i < listed.size(); ++i) {
    const nlohmann::json config = read_small_json(look, listed[i].folder + "/config.json");
    if (listed[i].type == "Pooling" && i == 1) {
      const auto said = size_in(config, {"word_embedding_dimension", "embedding_dimension"});
      if (said && *said != *width) {
        findings.push_back(finding_of(
            listed[i], "embedding_dimension", *said, *width, "the transformer before it",
            "Later modules and indexes are then built for vectors of the wrong length."));
        findings.back().severity = Severity::kWarning;
      }
      pooled = is_single_mode_pooling(config) ? width : std::nullopt;
      continue;
    }
    if (listed[i].type == "Dense") {
      const auto said = size_in(config, {"in_features"});
      if (pooled && said && *said != *pooled)
        findings.push_back(finding_of(listed[i], "in_features", *said, *pooled,
                                      "the pooling before it",
                                      "Encoding fails: the two shapes cannot be multiplied."));
      return findings;
    }
    const bool keeps_width = listed[i].type == "Dropout" || listed[i].type == "LayerNorm" ||
                             listed[i].type == "Normalize";
    if (!keeps_width) return findings;
  }
  return findings;
}

// Kinds of files in the folder of a component.
struct ComponentFolder {
  bool has_config = false, has_other_files = false, is_there = false;
};

ComponentFolder component_folder(std::span<const Entry> entries, const std::string& folder) {
  ComponentFolder found;
  for (const Entry& entry : entries) {
    if (!entry.path.starts_with(folder + "/")) continue;
    found.is_there = true;
    found.has_config = found.has_config || entry.path == folder + "/config.json";
    found.has_other_files = found.has_other_files || !entry.path.ends_with(".json");
  }
  return found;
}

// Only models have a config.json of this name. Weights in unsupported formats count as existing
// files.
std::optional<Finding> missing_component(const std::string& folder, const std::string& type,
                                         std::span<const Entry> entries) {
  const ComponentFolder found = component_folder(entries, folder);
  const bool lacks_weights = found.has_config && !found.has_other_files;
  if (found.is_there && !lacks_weights) return std::nullopt;
  Finding finding{.rule = "config-announces", .severity = Severity::kError};
  finding.cause = fmt::format(
      "model_index.json names {} ({}), and {}. diffusers fails when it loads the pipeline.", folder,
      type, found.is_there ? "no weights are in that folder" : "that folder is missing");
  finding.subjects = {folder};
  finding.evidence = {{"key", std::string("model_index.json")}, {"count", std::int64_t{1}}};
  return finding;
}

// "fp16" for "model.fp16-00001-of-00002.safetensors"; empty for the plain form; nullopt for files
// that are not weights of a component.
std::optional<std::string> weights_variant_of_file(std::string_view name) {
  constexpr auto kEndings = std::to_array<std::string_view>({".safetensors", ".bin"});
  constexpr auto kStems =
      std::to_array<std::string_view>({"diffusion_pytorch_model", "pytorch_model", "model"});
  const auto ending =
      std::ranges::find_if(kEndings, [&](std::string_view one) { return name.ends_with(one); });
  const auto stem =
      std::ranges::find_if(kStems, [&](std::string_view one) { return name.starts_with(one); });
  if (ending == kEndings.end() || stem == kStems.end()) return std::nullopt;
  name.remove_prefix(stem->size());
  name.remove_suffix(std::min(ending->size(), name.size()));
  name = name.substr(0, name.find('-'));
  if (name.empty()) return std::string();
  return name.front() == '.' ? std::optional(std::string(name.substr(1))) : std::nullopt;
}

// Reports a component that has only a variant, if another one lacks that variant: no single call
// of from_pretrained finds both in one precision.
std::optional<Finding> variant_mismatch_finding(std::span<const Entry> entries,
                                                const std::vector<std::string>& components) {
  std::map<std::string, std::set<std::string>> variants;
  for (const Entry& entry : entries) {
    const std::size_t slash = entry.path.find('/');
    if (slash == std::string::npos || entry.kind != EntryKind::kFile) continue;
    const std::string folder = entry.path.substr(0, slash);
    if (std::ranges::find(components, folder) == components.end()) continue;
    if (auto variant = weights_variant_of_file(std::string_view(entry.path).substr(slash + 1)))
      variants[folder].insert(std::move(*variant));
  }
  for (const auto& [folder, of] : variants) {
    if (of.contains("")) continue;
    const std::string& variant = *of.begin();
    const auto without = std::ranges::find_if(
        variants, [&](const auto& one) { return !one.second.contains(variant); });
    if (without == variants.end()) continue;
    Finding finding{.rule = "config-announces", .severity = Severity::kWarning};
    finding.cause = fmt::format(
        "{} has only the variant {}, but {} does not have it: part of the variant is missing, or "
        "{} lost its plain weights. diffusers fails without variant=\"{}\", and mixes two "
        "precisions with it.",
        folder, variant, without->first, folder, variant);
    finding.subjects = {folder, without->first};
    finding.evidence = {{"key", std::string("variant")}, {"count", std::int64_t{1}}};
    return finding;
  }
  return std::nullopt;
}

}  // namespace

std::vector<ListedModule> listed_modules(const DirectoryContents& look) {
  std::vector<ListedModule> modules;
  const nlohmann::json json = read_small_json(look, std::string(kModuleList));
  if (!json.is_array()) return modules;
  for (const auto& one : json) {
    ListedModule module{text_in(one, "path"), class_of(text_in(one, "type")),
                        std::string(kModuleList)};
    const bool has_branches = module.type == "Router" || module.type == "Asym";
    const std::string folder = module.folder;
    add_listed(std::move(module), modules);
    if (has_branches && (folder.empty() || is_safe_relative_path(folder)))
      add_router_branches(look, folder, modules);
  }
  return modules;
}

std::vector<FolderPart> module_parts(const DirectoryContents& look, std::span<const Entry> entries,
                                     std::span<const FormatRow> rows) {
  std::vector<FolderPart> parts;
  if (look.entry(kModuleList).kind != EntryKind::kFile) return parts;
  const std::vector<ListedModule> listed = listed_modules(look);
  for (const std::string& folder : folders_with_checkpoints(entries, rows)) {
    const bool is_listed = std::ranges::any_of(
        listed, [&](const ListedModule& module) { return module.folder == folder; });
    const bool is_numbered = folder.find('/') == std::string::npos && !folder.empty() &&
                             folder.front() >= '0' && folder.front() <= '9';
    if (is_listed || (listed.empty() && is_numbered))
      parts.push_back({folder, prefix_of_folder(folder)});
  }
  return parts;
}

std::shared_ptr<const Checkpoint> with_module_findings(std::shared_ptr<const Checkpoint> opened,
                                                       const DirectoryContents& look,
                                                       std::span<const FormatRow> rows) {
  const std::vector<ListedModule> listed = listed_modules(look);
  auto entries = look.entries();
  if (listed.empty() || !entries) return opened;
  const std::vector<std::string> folders = folders_with_checkpoints(*entries, rows);
  std::set<std::string> with_weights(folders.begin(), folders.end());
  // A converted checkpoint may have the tensors of all modules in its own files.
  for (const ListedModule& module : listed) {
    if (has_tensors_of(*opened, prefix_of_folder(module.folder)))
      with_weights.insert(module.folder);
  }
  std::vector<Finding> findings = mismatched_widths(listed, look);
  for (const ListedModule& module : listed) {
    if (auto missing = missing_files(module, look, with_weights))
      findings.push_back(std::move(*missing));
    for (Finding& finding : mismatched_shapes(module, look, *opened))
      findings.push_back(std::move(finding));
  }
  for (Finding& finding : findings)
    opened = CheckpointBuilder::with_finding(*opened, std::move(finding));
  return opened;
}

// Reads {"vae": ["diffusers", "AutoencoderKL"], "safety_checker": [null, null], "_class_name": ..}.
std::shared_ptr<const Checkpoint> with_component_findings(std::shared_ptr<const Checkpoint> opened,
                                                          const DirectoryContents& look,
                                                          std::span<const FormatRow> rows) {
  const nlohmann::json json = read_small_json(look, "model_index.json");
  auto entries = look.entries();
  if (!json.is_object() || json.size() > kMaxModules || !entries) return opened;
  const std::vector<std::string> folders = folders_with_checkpoints(*entries, rows);
  const std::set<std::string> with_weights(folders.begin(), folders.end());
  std::vector<std::string> components;
  for (const auto& [folder, named] : json.items()) {
    const bool is_component = named.is_array() && named.size() == 2 && named[0].is_string() &&
                              named[1].is_string() && is_safe_relative_path(folder);
    if (is_component) components.push_back(folder);
    if (!is_component || with_weights.contains(folder)) continue;
    if (auto missing = missing_component(folder, named[1].get<std::string>(), *entries))
      opened = CheckpointBuilder::with_finding(*opened, std::move(*missing));
  }
  if (auto half = variant_mismatch_finding(*entries, components))
    opened = CheckpointBuilder::with_finding(*opened, std::move(*half));
  return opened;
}

}  // namespace shw
