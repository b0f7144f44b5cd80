// Converts layer numbers. A file numbers the layers of its own pipeline stage from 0 (in an
// interleaved pipeline, of each chunk). The number in the whole model adds the layers before them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace shw {

// Position and value of the layer number in "model.language_model.encoder.layers.3.mlp.weight".
struct LayerNumber {
  std::size_t at = 0, length = 0;  // position of the digits
  std::uint32_t number = 0;
};
std::optional<LayerNumber> layer_number(std::string_view name);

class LegacyLayers {
 public:
  // Records a stage whose file was read.
  void add_stage(std::uint32_t stage) { there_.insert(stage); }
  // Adds a tensor name of a stage's chunk.
  void add(std::string_view name, std::uint32_t chunk, std::uint32_t stage);
  // Call after the last add(). A missing stage counts as many layers as the largest other one.
  void finish(std::uint32_t chunks, std::uint32_t stages);
  // The name with the layer's number in the whole model.
  std::string whole_name(const std::string& name, std::uint32_t chunk, std::uint32_t stage) const;

 private:
  struct Stage {
    std::uint32_t first = 0, end = 0;  // range of the layer numbers seen
    std::uint32_t before = 0;
  };
  using Stages = std::map<std::pair<std::uint32_t, std::uint32_t>, Stage>;  // by chunk and stage
  std::set<std::uint32_t> there_;
  std::map<std::string, Stages, std::less<>> stages_;  // by the part of the name before the number
};

}  // namespace shw
