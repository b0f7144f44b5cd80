// A pipeline's parts (a model of diffusers, the modules of sentence-transformers) lie in folders of
// their own, and names of tensors begin with the folder's. Where a first save puts each tensor.
#pragma once

#include <string>
#include <vector>

#include "core/formats/format_writer.h"

namespace shw {

struct PartHome {
  std::string folder;      // "unet/"; empty: the top
  std::string stem;        // of its files: "diffusion_pytorch_model"
  std::string torch_file;  // of torch.save: "diffusion_pytorch_model.bin"
  std::size_t prefix = 0;  // so many characters of the FQN are the folder's: "unet."
};
struct PartHomes {
  std::vector<PartHome> homes;           // at least one
  std::vector<std::uint32_t> of_tensor;  // by index in Outputs::tensors

  const PartHome& of(std::size_t tensor) const { return homes[of_tensor[tensor]]; }
};
// All at the top where the source has no parts, or where a name does not say which part it is of.
PartHomes part_homes(const Outputs& outputs);
// The name of a tensor in the file that holds it.
std::string name_in_file(const OutputTensor& tensor, const PartHome& home);

}  // namespace shw
