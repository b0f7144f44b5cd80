#include "core/facts/names/layer_numbers.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "core/facts/states/optimizer_states.h"

namespace shw {
namespace {

bool is_number(std::string_view part) {
  return !part.empty() && part.size() < 7 &&
         std::all_of(part.begin(), part.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

// Begin of the parameter's own name within the name of a state or group setting.
std::size_t begin_of_own_name(std::string_view name) {
  if (!name.starts_with("optim")) return 0;
  if (auto state = parse_state_fqn(name))
    return static_cast<std::size_t>(state->key.data() - name.data());
  for (std::string_view word : {".param_groups.", ".param_to_group_meta.", ".state."}) {
    std::size_t at = name.find(word);
    if (at != std::string_view::npos) return at + word.size();
  }
  return name.size();
}

}  // namespace

std::optional<LayerName> layer_name_of(std::string_view fqn) {
  std::size_t begin = 0;
  while (begin < fqn.size()) {
    std::size_t end = std::min(fqn.find('.', begin), fqn.size());
    std::string_view part = fqn.substr(begin, end - begin);
    if (is_number(part) && begin > 0)
      return LayerName{std::string(fqn.substr(0, begin)), std::string(fqn.substr(end)),
                       std::stoll(std::string(part))};
    begin = end + 1;
  }
  return std::nullopt;
}

std::optional<CorrectLayerNumber> with_correct_layer_number(std::string_view name,
                                                            const LayerNumbers& numbers) {
  std::size_t own = begin_of_own_name(name);
  auto layer = layer_name_of(name.substr(own));
  if (!layer || unwrapped_name(layer->before) != unwrapped_name(numbers.before))
    return std::nullopt;
  CorrectLayerNumber out{std::string(name.substr(0, own)) + layer->before, layer->number};
  auto found = numbers.real.find(layer->number);
  out.known = found != numbers.real.end();
  out.name += fmt::format("{}{}", out.known ? found->second : layer->number, layer->after);
  return out;
}

}  // namespace shw
