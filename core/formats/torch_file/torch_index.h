// The index beside several files of torch.save that are one model, as transformers wrote them up to
// its version 4: pytorch_model.bin.index.json and pytorch_model-00001-of-00003.bin.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/formats/common/weight_map.h"

namespace shw {

inline constexpr IndexNames kTorchIndexNames{"pytorch_model.bin.index.json", "pytorch_model.bin"};

struct TorchIndex {
  std::string path;
  WeightMap map;
  std::vector<std::string> files =
      {};  // that it names, or that are parts of the same, and lie there
  std::optional<std::uint64_t> total = {};
  std::optional<Finding> finding = {};
};

// Nothing where there is none, where there are several and none has the usual name, or where it
// cannot be used.
Result<std::optional<TorchIndex>> find_torch_index(const Directory& directory);

}  // namespace shw
