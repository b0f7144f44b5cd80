// File names for the parts of a pipeline (a diffusers model, modules of sentence-transformers):
// each part has its own folder, whose name is the prefix of its tensors. Chooses the file of each
// tensor in a new checkpoint.
#pragma once

#include <string>
#include <vector>

#include "core/formats/format_writer.h"

namespace shw {

struct PartLocation {
  std::string folder;      // "unet/"; empty: the top folder
  std::string stem;        // stem of its files: "diffusion_pytorch_model"
  std::string torch_file;  // name of its torch.save file: "diffusion_pytorch_model.bin"
  std::size_t prefix = 0;  // length of the folder's prefix in the FQN ("unet.")
};
struct PartLocations {
  std::vector<PartLocation> homes;       // at least one
  std::vector<std::uint32_t> of_tensor;  // by index in Outputs::tensors

  const PartLocation& of(std::size_t tensor) const { return homes[of_tensor[tensor]]; }
};
// A single home at the top if the source has no parts, or if a tensor's name belongs to none.
PartLocations part_locations(const Outputs& outputs);
// The name of a tensor within its file.
std::string name_in_file(const OutputTensor& tensor, const PartLocation& home);

}  // namespace shw
