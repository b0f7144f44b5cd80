// Compares the weights that are quantised with the modules that the config excludes from it.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/base/words.h"
#include "core/facts/names/layer_numbers.h"
#include "core/facts/names/name_families.h"
#include "core/rules/names/quant_check.h"
#include "core/tensor/cast.h"

namespace shw {
namespace {

std::string_view parent_module(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(0, dot);
}

std::string_view last_part(std::string_view name) {
  return name.substr(name.rfind('.') + 1);  // all of it without a dot: npos + 1 is 0
}

// The entry of the config that excludes the weight; nullopt if none surely does.
std::optional<std::string> exclusion_of(const QuantCheck& check, const QuantPair& pair) {
  std::string_view module = pair.stem;
  if (module.ends_with(".weight")) module = parent_module(module);
  const auto ignored = check.ignored.first_in(check.facts.checkpoint.fqn(pair.weight));
  // Entries of compressed-tensors are whole names; others may be parts of one.
  if (ignored && (check.config->method != "compressed-tensors" ||
                  check.config->unconverted[*ignored] == module))
    return check.config->unconverted[*ignored];
  for (const std::string& pattern : check.config->patterns)
    if (surely_names(pattern, module)) return pattern;
  return std::nullopt;
}

// "layers.3.mlp.gate" of a module in a layer; empty outside layers.
std::string_view from_layers(std::string_view module) {
  const std::size_t layers = module.find("layers.");
  return layers == std::string_view::npos ? std::string_view() : module.substr(layers);
}

using ModuleNames = std::set<std::string_view>;

// All modules of the checkpoint, and those around them.
ModuleNames modules_of(const QuantCheck& check) {
  ModuleNames modules;
  for (TensorId tensor : each_tensor(check.facts)) {
    std::string_view module = parent_module(check.facts.checkpoint.fqn(tensor));
    while (!module.empty() && modules.insert(module).second) module = parent_module(module);
  }
  return modules;
}

// What the config's list may exempt beyond whole parts of names: loaders differ in how they read
// an entry, and this only spares weights.
class LenientExclusions {
 public:
  LenientExclusions(const QuantCheck& check, const ModuleNames& modules) : check_(check) {
    constexpr std::size_t kMaxSubstrings = 64;
    const auto& entries = check.config->unconverted;
    for (const std::string& entry : entries) {
      entries_.insert(entry);
      // A list of names in memory: model.language_model.layers for language_model.model.layers.
      if (const auto tail = from_layers(entry); !tail.empty() && !modules.contains(entry))
        tails_.insert(tail);
    }
    if (check.config->method == "awq" && entries.size() <= kMaxSubstrings)
      substrings_.assign(entries.begin(), entries.end());
  }

  bool may_exempt(std::string_view fqn) const {
    const std::string_view module = parent_module(fqn);
    return check_.ignored.has_child_of(parent_module(module)) || check_.ignored.first_in(fqn) ||
           is_ending(module) || has_tail(module) ||
           std::ranges::any_of(substrings_,
                               [&](std::string_view part) { return fqn.find(part) != fqn.npos; });
  }

 private:
  // "attn.q_proj" is an ending of "self_attn.q_proj".
  bool is_ending(std::string_view module) const {
    constexpr std::size_t kMaxModuleName = 512;
    if (entries_.empty() || module.size() > kMaxModuleName) return false;
    for (; !module.empty(); module.remove_prefix(1)) {
      if (entries_.contains(module)) return true;
    }
    return false;
  }
  bool has_tail(std::string_view module) const {
    if (tails_.empty()) return false;
    for (std::string_view tail = from_layers(module); !tail.empty(); tail = parent_module(tail)) {
      if (tails_.contains(tail)) return true;
    }
    return false;
  }

  const QuantCheck& check_;
  std::unordered_set<std::string_view> entries_, tails_;
  std::vector<std::string_view> substrings_;
};

std::int64_t layer_of(std::string_view fqn) {
  const auto layer = layer_name_of(fqn);
  return layer ? layer->number : 0;
}

bool is_plain_matrix(const Checkpoint& c, TensorId tensor) {
  return c.fqn(tensor).ends_with(".weight") && c.shape(tensor).size() == 2 &&
         is_plain_float(c.dtype(tensor));
}

// True if the config's lists are all that exempts modules, and loaders build a quantised module for
// each one that they do not name.
bool lists_all_exclusions(const QuantCheck& check, const QuantFamily& family) {
  constexpr auto kMethods = std::to_array<std::string_view>(
      {"compressed-tensors", "fp8", "fbgemm_fp8", "gptq", "awq", "modelopt"});
  return check.config && family.is_said && !check.config->has_overrides &&
         !check.config->has_patterns &&
         std::find(kMethods.begin(), kMethods.end(), check.config->method) != kMethods.end();
}

// Projections that every loader of these methods builds as quantised modules. Routers, heads and
// the inputs of linear attention are plain in some models whatever the config says.
bool is_usual_projection(std::string_view module) {
  constexpr auto kProjections = std::to_array<std::string_view>(
      {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"});
  return std::find(kProjections.begin(), kProjections.end(), last_part(module)) !=
         kProjections.end();
}

// "model.layers.3." for a name in that layer; empty outside layers.
std::string_view layer_prefix(std::string_view fqn) {
  constexpr std::string_view kLayers = "layers.";
  const std::size_t layers = fqn.find(kLayers);
  if (layers == std::string_view::npos) return {};
  const std::size_t dot = fqn.find('.', layers + kLayers.size());
  return dot == std::string_view::npos ? std::string_view() : fqn.substr(0, dot + 1);
}

// Plain weights whose counterparts in other layers are quantised, or that are usual projections
// next to quantised weights of their own layer. Layers after the last quantised one predict further
// tokens (MTP), and loaders treat them separately.
struct PlainWeights {
  std::vector<std::string> unlike_layers, unlike_layer;
};

PlainWeights plain_weights_of(const QuantCheck& check, const QuantFamily& family,
                              const LenientExclusions& exclusions) {
  const Checkpoint& c = check.facts.checkpoint;
  std::map<std::string, std::int64_t> last_layer;  // the last layer in which it is quantised
  std::set<std::string_view> layers;               // with a quantised projection
  for (const QuantPair& pair : family.pairs) {
    auto [last, is_new] = last_layer.try_emplace(without_numbers(pair.stem), -1);
    last->second = std::max(last->second, layer_of(pair.stem));
    if (is_usual_projection(pair.stem)) layers.insert(layer_prefix(pair.stem));
  }
  layers.erase(std::string_view());
  // report_orphans reports weights that have a scale.
  std::set<TensorId> with_scale;
  for (const QuantFamily::Orphan& orphan : family.orphans)
    if (orphan.unquantised) with_scale.insert(*orphan.unquantised);
  PlainWeights out;
  for (TensorId tensor : each_tensor(check.facts)) {
    if (!is_plain_matrix(c, tensor) || with_scale.contains(tensor)) continue;
    const std::string_view fqn = c.fqn(tensor), module = parent_module(fqn);
    if (exclusions.may_exempt(fqn)) continue;
    const auto last = last_layer.find(without_numbers(module));
    if (last != last_layer.end()) {
      if (layer_of(fqn) <= last->second) out.unlike_layers.emplace_back(fqn);
    } else if (is_usual_projection(module) && layers.contains(layer_prefix(fqn))) {
      out.unlike_layer.emplace_back(fqn);
    }
  }
  return out;
}

void report_plain(QuantCheck& check, const std::vector<std::string>& plain, const char* unlike) {
  if (plain.empty()) return;
  const bool is_one = plain.size() == 1;
  check.report(
      fmt::format("{} {} not quantised ({}), while {}, and {} does not list {} as "
                  "excluded. A loader creates a quantised module there, finds no scale, "
                  "and fails or outputs garbage.",
                  plural(plain.size(), "weight"), is_one ? "is" : "are", short_list_text(plain),
                  unlike, check.config->file, is_one ? "it" : "them"),
      plain, plain);
}

// Last parts of names in the config's list that no module has, by the module around them, which
// exists.
using UnusedNames = std::map<std::string_view, std::set<std::string_view>>;

UnusedNames unused_exclusions(const QuantCheck& check, const ModuleNames& modules) {
  UnusedNames out;
  for (const std::string& name : check.config->unconverted) {
    const std::string_view parent = parent_module(name);
    if (modules.contains(parent) && !modules.contains(name)) out[parent].insert(last_part(name));
  }
  return out;
}

// Routers, embeddings and heads are plain in some models whatever the config says.
bool is_often_plain(std::string_view part) {
  constexpr auto kPlainParts =
      std::to_array<std::string_view>({"gate", "router", "embed_tokens", "lm_head"});
  return std::find(kPlainParts.begin(), kPlainParts.end(), part) != kPlainParts.end();
}

// The unused name that begins with `part`, or with which `part` begins.
std::optional<std::string_view> outdated_name(const std::set<std::string_view>& unused,
                                              std::string_view part) {
  constexpr std::size_t kMinCommonPart = 4, kMaxCommonPart = 256;
  if (part.size() < kMinCommonPart || part.size() > kMaxCommonPart) return std::nullopt;
  const auto longer = unused.lower_bound(part);
  if (longer != unused.end() && longer->starts_with(part)) return *longer;
  for (std::size_t size = part.size() - 1; size >= kMinCommonPart; --size) {
    if (const auto found = unused.find(part.substr(0, size)); found != unused.end()) return *found;
  }
  return std::nullopt;
}

// Reports plain weights that the list misses because it has an older or a newer form of their
// names: in_proj_qkv and in_proj_z for in_proj_qkvz.
void report_outdated_names(QuantCheck& check, const ModuleNames& modules) {
  const Checkpoint& c = check.facts.checkpoint;
  const UnusedNames unused = unused_exclusions(check, modules);
  if (unused.empty()) return;
  std::vector<std::string> plain, details;
  std::set<std::string> outdated;
  for (TensorId tensor : each_tensor(check.facts)) {
    const std::string_view module = parent_module(c.fqn(tensor)), part = last_part(module);
    const std::string_view parent = parent_module(module);
    const auto others = unused.find(parent);
    if (!is_plain_matrix(c, tensor) || others == unused.end() || is_often_plain(part) ||
        check.ignored.first_in(c.fqn(tensor)))
      continue;
    const auto old = outdated_name(others->second, part);
    if (!old) continue;
    const std::string name = fmt::format("{}{}{}", parent, parent.empty() ? "" : ".", *old);
    plain.emplace_back(c.fqn(tensor));
    details.push_back(fmt::format("{}: {}", c.fqn(tensor), name));
    outdated.insert(name);
  }
  if (plain.empty()) return;
  const std::vector<std::string> names(outdated.begin(), outdated.end());
  const bool is_one = plain.size() == 1;
  check.report(
      fmt::format("{} {} not quantised ({}), and {} excludes {} by {} that no module has ({}). A "
                  "loader creates a quantised module there, finds no scale, and fails or outputs "
                  "garbage. Write the stored names into the list.",
                  plural(plain.size(), "weight"), is_one ? "is" : "are", short_list_text(plain),
                  check.config->file, is_one ? "it" : "them", plural(names.size(), "name"),
                  short_list_text(names)),
      plain, details);
}

}  // namespace

void report_unconverted(QuantCheck& check, const QuantFamily& family) {
  if (!check.config) return;
  std::vector<std::string> weights, details;
  for (const QuantPair& pair : family.pairs) {
    const auto exclusion = exclusion_of(check, pair);
    if (!exclusion) continue;
    weights.push_back(check.fqn(pair.weight));
    details.push_back(fmt::format("{}: {}", weights.back(), *exclusion));
  }
  if (weights.empty()) return;
  const bool is_one = weights.size() == 1;
  check.report(
      fmt::format("{} {} quantised, and {} lists {} as not quantised ({}). A loader creates a "
                  "plain module there and reads the packed numbers as weights, or fails. If {} "
                  "meant to be quantised, remove {} from the list.",
                  plural(weights.size(), "weight"), is_one ? "is" : "are", check.config->file,
                  is_one ? "it" : "them", details.front(), is_one ? "it is" : "they are",
                  is_one ? "the entry" : "the entries"),
      weights, details);
}

void report_unquantised(QuantCheck& check, const std::vector<QuantFamily>& families) {
  std::set<std::string> reported;
  auto report_once = [&](std::vector<std::string> plain, const char* unlike) {
    std::erase_if(plain, [&](const std::string& fqn) { return !reported.insert(fqn).second; });
    report_plain(check, plain, unlike);
  };
  if (!check.config) return;
  const ModuleNames modules = modules_of(check);
  const LenientExclusions exclusions(check, modules);
  bool has_lists = false;
  for (const QuantFamily& family : families) {
    if (!lists_all_exclusions(check, family)) continue;
    has_lists = has_lists || !family.pairs.empty();
    const PlainWeights plain = plain_weights_of(check, family, exclusions);
    report_once(plain.unlike_layers, "their counterparts in other layers are");
    report_once(plain.unlike_layer, "other weights of the same layers are");
  }
  if (has_lists) report_outdated_names(check, modules);
}

}  // namespace shw
