// The index of a model in several torch.save files, as transformers up to version 4 wrote it:
// pytorch_model.bin.index.json with pytorch_model-00001-of-00003.bin.
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
      {};  // existing files that the index names, or that are parts of the same save
  std::optional<std::uint64_t> total = {};
  std::optional<Finding> finding = {};
  // For an unusable index, whose map is empty: parts that the other names imply but that do not
  // exist.
  std::vector<std::string> missing = {};
  // Missing files of the index, if `files` are others that contain all its tensors.
  std::vector<std::string> not_there = {};
};

// nullopt if there is no index, or several without the usual name. For an unusable index: its
// finding, and the parts by file name.
Result<std::optional<TorchIndex>> find_torch_index(const Directory& directory);

// Parts without an index, found by their names ("pytorch_model-00001-of-00003.bin").
struct TorchParts {
  std::vector<std::string> files = {};    // existing parts, in order
  std::vector<std::string> missing = {};  // parts that the names imply but that do not exist
};
// With several families of names, chooses the one that transformers uses. Empty if there is no such
// choice, or if there is an index.
TorchParts torch_parts_among(std::span<const Entry> entries);

}  // namespace shw
