#include "core/formats/megatron_legacy/legacy_layers.h"

#include <algorithm>

#include "core/base/words.h"

namespace shw {

std::optional<LayerNumber> layer_number(std::string_view name) {
  constexpr std::string_view kLayers = "layers.";
  constexpr std::int64_t kMaxLayers = 1 << 16;
  for (std::size_t at = name.find(kLayers); at != std::string_view::npos;
       at = name.find(kLayers, at + 1)) {
    if (at != 0 && name[at - 1] != '.') continue;
    const std::size_t begin = at + kLayers.size();
    std::string_view rest = name.substr(begin);
    const auto number = consume_number(rest);
    if (number && *number < kMaxLayers && rest.starts_with('.'))
      return LayerNumber{begin, name.size() - begin - rest.size(),
                         static_cast<std::uint32_t>(*number)};
  }
  return std::nullopt;
}

void LegacyLayers::add(std::string_view name, std::uint32_t chunk, std::uint32_t stage) {
  const auto layer = layer_number(name);
  if (!layer) return;
  auto known = stages_.find(name.substr(0, layer->at));
  if (known == stages_.end())
    known = stages_.emplace(std::string(name.substr(0, layer->at)), Stages{}).first;
  auto [found, is_new] = known->second.try_emplace({chunk, stage});
  Stage& one = found->second;
  one.first = is_new ? layer->number : std::min(one.first, layer->number);
  one.end = std::max(one.end, layer->number + 1);
}

void LegacyLayers::finish(std::uint32_t chunks, std::uint32_t stages) {
  for (auto& [before, own] : stages_) {
    // If numbers continue from stage to stage, they already refer to the whole model.
    const bool is_numbered =
        std::any_of(own.begin(), own.end(), [](const auto& one) { return one.second.first != 0; });
    if (is_numbered) continue;
    std::uint32_t most = 0, count = 0;
    for (const auto& [place, stage] : own) most = std::max(most, stage.end);
    for (std::uint32_t c = 0; c < chunks; ++c) {
      for (std::uint32_t s = 0; s < stages; ++s) {
        auto found = own.find({c, s});
        if (found != own.end()) found->second.before = count;
        // An existing stage without such layers adds none; it may contain only the embedding.
        if (found != own.end())
          count += found->second.end;
        else if (!there_.contains(s))
          count += most;
      }
    }
  }
}

std::string LegacyLayers::whole_name(const std::string& name, std::uint32_t chunk,
                                     std::uint32_t stage) const {
  const auto layer = layer_number(name);
  if (!layer) return name;
  auto known = stages_.find(std::string_view(name).substr(0, layer->at));
  if (known == stages_.end()) return name;
  auto found = known->second.find({chunk, stage});
  const std::uint32_t before = found == known->second.end() ? 0 : found->second.before;
  return name.substr(0, layer->at) + std::to_string(layer->number + before) +
         name.substr(layer->at + layer->length);
}

}  // namespace shw
