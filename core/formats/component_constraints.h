// The sizes and counts of tensors that the config of a library other than transformers gives:
// diffusers, timm, OpenCLIP and Meta's own code.
#pragma once

#include <span>
#include <string_view>

namespace shw {

struct ConfigConstraint {
  // The class in the config; empty: all of the library. "*Transformer" is any with that text.
  std::string_view type;
  // For a size: a tensor name, in which a leading '*' matches any text and '#' matches a number.
  // For a count: the name of the module list before the numbers, such as "transformer_blocks".
  std::string_view tensor;
  // A product of keys of the config: "2*latent_channels", "block_out_channels[#]" (the number in
  // the tensor's name), "block_out_channels[-1]", "len(down_block_types)", "vision_cfg.width".
  std::string_view value;
  int axis = 0;
};
inline constexpr int kCountsList = -1;  // the axis of a constraint about a count

std::span<const ConfigConstraint> constraints_of_diffusers();
std::span<const ConfigConstraint> constraints_of_open_clip();
std::span<const ConfigConstraint> constraints_of_meta();
// Text encoders of a pipeline. A folder of transformers alone is checked by the rules.
std::span<const ConfigConstraint> constraints_of_text_encoders();

}  // namespace shw
