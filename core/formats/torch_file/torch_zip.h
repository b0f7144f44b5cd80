// A zip archive of files of torch.save, as stable-baselines3 saves an agent: policy.pth,
// policy.optimizer.pth, pytorch_variables.pth, and JSON in "data". Each file is a part of one
// checkpoint, with its name in front: "policy.mlp_extractor.0.weight".
#pragma once

#include "core/formats/format_row.h"

namespace shw {

OpenedCheckpoint open_torch_zip(std::shared_ptr<const Directory> directory, Progress* progress);

extern const FormatRow kTorchZipRow;

}  // namespace shw
