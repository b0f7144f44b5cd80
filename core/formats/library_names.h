// Chooses the file names under which libraries look for a model's weights, from the files in the
// source's folder: transformers, diffusers and PEFT each look for one name. A file with another
// name is loaded by that name, which is kept.
#pragma once

#include <string>

#include "core/model/checkpoint.h"

namespace shw {

struct WeightFileNames {
  std::string stem = "model";           // stem of .safetensors files
  std::string torch_file = "model.pt";  // name of a torch.save file
};
// `folder`: a subfolder of the source ("unet/"), or empty. `source` may be null. `names_stay`: no
// tensor is renamed to the name that another program uses.
WeightFileNames weight_file_names(const Checkpoint* source, const std::string& folder = {},
                                  bool names_stay = true);

}  // namespace shw
