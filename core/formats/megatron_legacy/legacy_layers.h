// Numbers of layers. A file has those of its own pipeline stage, and of an interleaved pipeline
// those of each of its chunks, each from 0: the number in the whole model is that of the layers
// before it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace shw {

// "model.language_model.encoder.layers.3.mlp.weight"
struct LayerNumber {
  std::size_t at = 0, length = 0;  // of the digits
  std::uint32_t number = 0;
};
std::optional<LayerNumber> layer_number(std::string_view name);

class LegacyLayers {
 public:
  // A stage whose file was read.
  void add_stage(std::uint32_t stage) { there_.insert(stage); }
  // A name of the stage's chunk.
  void add(std::string_view name, std::uint32_t chunk, std::uint32_t stage);
  // All have been added; of stages whose files are not there the layers are as many as the others'.
  void finish(std::uint32_t chunks, std::uint32_t stages);
  // With the number that the layer has in the whole.
  std::string whole_name(const std::string& name, std::uint32_t chunk, std::uint32_t stage) const;

 private:
  struct Stage {
    std::uint32_t first = 0, end = 0;  // numbers that were met
    std::uint32_t before = 0;
  };
  using Stages = std::map<std::pair<std::uint32_t, std::uint32_t>, Stage>;  // by chunk and stage
  std::set<std::uint32_t> there_;
  std::map<std::string, Stages, std::less<>> stages_;  // by what stands before the number
};

}  // namespace shw
