// The index beside several files of torch.save that are one model, as transformers wrote them up to
// its version 4: pytorch_model.bin.index.json and pytorch_model-00001-of-00003.bin.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/formats/common/weight_map.h"

namespace shw {

inline constexpr std::string_view kTorchIndexSuffix = ".bin.index.json";
inline constexpr IndexNames kTorchIndexNames{"pytorch_model.bin.index.json", "pytorch_model.bin"};

struct TorchIndex {
  std::string path;
  WeightMap map;
  std::vector<std::string> files =
      {};  // that it names, or that are parts of the same, and lie there
  std::optional<std::uint64_t> total = {};
  std::optional<Finding> finding = {};
  // Of one that cannot be used, whose map is empty: parts that the names of the others promise.
  std::vector<std::string> missing = {};
  // That it names, where others that lie there hold all of its tensors: `files` are those.
  std::vector<std::string> not_there = {};
};

// Nothing where there is none, or where there are several and none has the usual name. Of one that
// cannot be used its finding, and the parts that lie beside it by their names.
Result<std::optional<TorchIndex>> find_torch_index(const Directory& directory);

// Parts without an index ("pytorch_model-00001-of-00003.bin"), by their names.
struct TorchParts {
  std::vector<std::string> files = {};    // those that lie there, in their order
  std::vector<std::string> missing = {};  // and the others that their names promise
};
// Of several families of names that of transformers; empty where none of two is it, and where there
// is an index.
TorchParts torch_parts_among(std::span<const Entry> entries);

}  // namespace shw
