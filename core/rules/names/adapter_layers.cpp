#include "core/rules/names/adapter_layers.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "core/facts/names/layer_numbers.h"

namespace shw {
namespace {

using LayerSet = std::set<std::int64_t>;
using ModulesOfStack = std::map<std::string, LayerSet>;  // key: module such as ".self_attn.q_proj"

constexpr auto kTogether = std::to_array<std::string_view>({"q_proj", "k_proj", "v_proj"});

bool has_sibling_module_in(const ModulesOfStack& stack, std::string_view module,
                           std::int64_t layer) {
  const std::size_t dot = module.rfind('.') + 1;
  const std::string before(module.substr(0, dot));
  const auto is_name = [&](std::string_view name) { return module.substr(dot) == name; };
  if (std::none_of(kTogether.begin(), kTogether.end(), is_name)) return false;
  return std::any_of(kTogether.begin(), kTogether.end(), [&](std::string_view sister) {
    const auto found = stack.find(before + std::string(sister));
    return found != stack.end() && found->second.contains(layer);
  });
}

// True for ".resnets.0.": the numbered stages of convolutional models are not alike, while all
// experts of a layer are.
bool is_in_numbered_block(std::string_view part) {
  std::string_view before;
  for (std::size_t at = 0; at < part.size();) {
    const std::size_t dot = std::min(part.find('.', at), part.size());
    const std::string_view word = part.substr(at, dot - at);
    const bool is_number =
        !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
    if (is_number && before != "experts") return true;
    before = word;
    at = dot + 1;
  }
  return false;
}

// The one layer, or the few of many, that has another module of the same part and lacks this one.
// The two modules have to be together in some other layer: dense layers before those of experts
// have modules of their own. Some models share keys and values between layers.
LayerSet layers_lacking_this_sibling(const ModulesOfStack& stack, std::string_view module,
                                     const LayerSet& layers) {
  constexpr std::size_t kMinParts = 8, kMaxSiblings = 256;
  const std::string_view part = module.substr(0, module.rfind('.') + 1);
  if (is_in_numbered_block(part)) return {};
  if (part.size() < 2 || module.ends_with(".k_proj") || module.ends_with(".v_proj")) return {};
  LayerSet alone;
  std::size_t sisters = 0;
  for (auto at = stack.lower_bound(std::string(part));
       at != stack.end() && at->first.starts_with(part); ++at) {
    const auto& [sister, there] = *at;
    if (sister.find('.', part.size()) != std::string::npos) continue;
    const auto is_of_module = [&](std::int64_t layer) { return layers.contains(layer); };
    if (++sisters > kMaxSiblings) return {};
    if (std::none_of(there.begin(), there.end(), is_of_module)) continue;
    std::set_difference(there.begin(), there.end(), layers.begin(), layers.end(),
                        std::inserter(alone, alone.end()));
  }
  return alone.size() == 1 || alone.size() * kMinParts <= layers.size() ? alone : LayerSet{};
}

// Layers that lack the module. The work is bounded by the file's tensors, because `layers` has each
// layer once.
LayerSet layers_without(const ModulesOfStack& stack, const std::string& module,
                        const LayerSet& layers, std::int64_t last) {
  LayerSet absent = layers_lacking_this_sibling(stack, module, layers);
  const auto count = static_cast<std::int64_t>(layers.size());
  const std::int64_t between = *layers.rbegin() - *layers.begin() + 1 - count;
  if (count >= 2 && between > 0 && (between == 1 || between <= (count - 1) / 8)) {
    for (std::int64_t i = *layers.begin(); i < *layers.rbegin(); ++i) {
      if (!layers.contains(i)) absent.insert(i);
    }
  }
  if (count >= 2 && last - *layers.rbegin() == 1 && has_sibling_module_in(stack, module, last))
    absent.insert(last);
  return absent;
}

}  // namespace

std::vector<std::string> modules_missing_in_layers(const std::vector<std::string_view>& modules) {
  std::map<std::string, ModulesOfStack> stacks;  // key: prefix such as "model.layers."
  for (std::string_view module : modules) {
    if (const auto name = layer_name_of(module); name && name->number >= 0)
      stacks[name->before][name->after].insert(name->number);
  }
  std::vector<std::string> absent;
  for (const auto& [before, stack] : stacks) {
    std::int64_t last = 0;
    for (const auto& [module, layers] : stack) last = std::max(last, *layers.rbegin());
    for (const auto& [module, layers] : stack) {
      for (std::int64_t layer : layers_without(stack, module, layers, last))
        absent.push_back(fmt::format("{}{}{}", before, layer, module));
    }
  }
  return absent;
}

}  // namespace shw
