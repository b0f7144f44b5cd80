// Under which names the libraries of a model look for its weights, as what lies in the source's
// folder tells: transformers, diffusers and PEFT each know one name. A file that no library knows
// is loaded by the name that it has, which stays.
#pragma once

#include <string>

#include "core/model/checkpoint.h"

namespace shw {

struct LibraryNames {
  std::string stem = "model";           // of .safetensors files
  std::string torch_file = "model.pt";  // of torch.save
};
// `folder`: of the source's folder, "unet/"; empty: its top. `source` may be null. `names_stay`: no
// tensor gets the name of another program.
LibraryNames library_names(const Checkpoint* source, const std::string& folder = {},
                           bool names_stay = true);

}  // namespace shw
