#include "core/formats/module_list.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "core/base/json.h"
#include "core/formats/folder_kind.h"
#include "core/model/builder.h"
#include "core/tensor/shape.h"

namespace shw {
namespace {

constexpr std::string_view kModuleList = "modules.json", kRouterList = "router_config.json";
constexpr std::uint64_t kMostListBytes = std::uint64_t{1} << 20;
constexpr std::size_t kMostModules = 256;

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

nlohmann::json json_of_list(const DirectoryLook& look, const std::string& path) {
  const Entry entry = look.entry(path);
  if (entry.kind != EntryKind::kFile || entry.size > kMostListBytes) return {};
  auto bytes = look.first_bytes(path, entry.size);
  if (!bytes) return {};
  auto keep_shallow = [](int depth, nlohmann::json::parse_event_t, const nlohmann::json&) {
    return depth < 16;
  };
  const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  auto parsed = parse_json<nlohmann::json>(text.begin(), text.end(), keep_shallow);
  return parsed.problem.empty() ? std::move(parsed.tree) : nlohmann::json();
}

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
  if (is_safe && modules.size() < kMostModules) modules.push_back(std::move(module));
}

// Adds the branches of a Router, which have subfolders: "query_0_StaticEmbedding".
void add_branches(const DirectoryLook& look, const std::string& folder,
                  std::vector<ListedModule>& modules) {
  const std::string before = folder.empty() ? "" : folder + "/";
  const std::string list = before + std::string(kRouterList);
  const nlohmann::json json = json_of_list(look, list);
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

std::optional<Finding> missing_files(const ListedModule& module, const DirectoryLook& look,
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
  Finding finding;
  finding.rule = "config-announces";
  finding.severity = Severity::kError;
  finding.cause = fmt::format(
      "{} names {}, a module of type {}, and no {} lies in that folder. sentence-transformers "
      "stops "
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

std::vector<Finding> other_shapes(const ListedModule& module, const DirectoryLook& look,
                                  const Checkpoint& c) {
  std::vector<Finding> findings;
  const std::string path = module.folder + "/config.json";
  std::optional<nlohmann::json> config;
  for (const ConfiguredShape& shape : kConfiguredShapes) {
    if (shape.type != module.type || module.folder.empty()) continue;
    const std::string fqn = prefix_of_folder(module.folder) + std::string(shape.tensor);
    const auto tensor = c.find(fqn);
    if (!tensor) continue;
    if (!config) config = json_of_list(look, path);
    const auto extents = configured_extents(*config, shape);
    if (!extents || same(*extents, c.shape(*tensor))) continue;
    Finding finding;
    finding.rule = "config-shape";
    finding.severity = Severity::kError;
    finding.cause = fmt::format(
        "{} is {}, and {} makes it {}. sentence-transformers stops with \"size mismatch\".", fqn,
        to_text(c.shape(*tensor)), path, to_text(*extents));
    finding.subjects = {fqn};
    finding.evidence = {
        {"saved", copy_of(c.shape(*tensor))}, {"expected", *extents}, {"count", std::int64_t{1}}};
    findings.push_back(std::move(finding));
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
  Finding finding;
  finding.rule = "config-announces";
  finding.severity = Severity::kError;
  finding.cause = fmt::format(
      "model_index.json names {} ({}), and {}. diffusers stops when it loads the pipeline.", folder,
      type, found.is_there ? "no weights lie in that folder" : "that folder is not there");
  finding.subjects = {folder};
  finding.evidence = {{"key", std::string("model_index.json")}, {"count", std::int64_t{1}}};
  return finding;
}

}  // namespace

std::vector<ListedModule> listed_modules(const DirectoryLook& look) {
  std::vector<ListedModule> modules;
  const nlohmann::json json = json_of_list(look, std::string(kModuleList));
  if (!json.is_array()) return modules;
  for (const auto& one : json) {
    ListedModule module{text_in(one, "path"), class_of(text_in(one, "type")),
                        std::string(kModuleList)};
    const bool has_branches = module.type == "Router" || module.type == "Asym";
    const std::string folder = module.folder;
    add_listed(std::move(module), modules);
    if (has_branches && (folder.empty() || is_safe_relative_path(folder)))
      add_branches(look, folder, modules);
  }
  return modules;
}

std::vector<FolderPart> module_parts(const DirectoryLook& look, std::span<const Entry> entries,
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
                                                       const DirectoryLook& look,
                                                       std::span<const FormatRow> rows) {
  const std::vector<ListedModule> listed = listed_modules(look);
  auto entries = look.entries();
  if (listed.empty() || !entries) return opened;
  const std::vector<std::string> folders = folders_with_checkpoints(*entries, rows);
  const std::set<std::string> with_weights(folders.begin(), folders.end());
  std::vector<Finding> findings;
  for (const ListedModule& module : listed) {
    if (auto missing = missing_files(module, look, with_weights))
      findings.push_back(std::move(*missing));
    for (Finding& finding : other_shapes(module, look, *opened))
      findings.push_back(std::move(finding));
  }
  for (Finding& finding : findings)
    opened = CheckpointBuilder::with_finding(*opened, std::move(finding));
  return opened;
}

// Reads {"vae": ["diffusers", "AutoencoderKL"], "safety_checker": [null, null], "_class_name": ..}.
std::shared_ptr<const Checkpoint> with_component_findings(std::shared_ptr<const Checkpoint> opened,
                                                          const DirectoryLook& look,
                                                          std::span<const FormatRow> rows) {
  const nlohmann::json json = json_of_list(look, "model_index.json");
  auto entries = look.entries();
  if (!json.is_object() || json.size() > kMostModules || !entries) return opened;
  const std::vector<std::string> folders = folders_with_checkpoints(*entries, rows);
  const std::set<std::string> with_weights(folders.begin(), folders.end());
  for (const auto& [folder, named] : json.items()) {
    const bool is_component = named.is_array() && named.size() == 2 && named[0].is_string() &&
                              named[1].is_string() && is_safe_relative_path(folder);
    if (!is_component || with_weights.contains(folder)) continue;
    if (auto missing = missing_component(folder, named[1].get<std::string>(), *entries))
      opened = CheckpointBuilder::with_finding(*opened, std::move(*missing));
  }
  return opened;
}

}  // namespace shw
