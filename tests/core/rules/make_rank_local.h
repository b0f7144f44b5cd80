// A DCP checkpoint where each rank has an index of its own.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/rules/make_contents.h"

namespace shw::test {

// As each of the ranks saved it for itself: whole tensors, but for those whose tiles are given.
inline std::string rank_local(const std::string& folder, const std::vector<MadeModel>& models) {
  std::filesystem::create_directories(folder);
  for (std::uint32_t rank = 0; rank < models.size(); ++rank) {
    const std::string number = std::to_string(rank), own = folder + "_of_" + number;
    MadeModel model = models[rank];
    for (MadeContent& tensor : model.tensors) {
      if (tensor.tiles.empty())
        tensor.tiles = {{Extents(tensor.shape.size(), 0), tensor.shape, rank}};
    }
    for (MadeEntry& entry : model.entries) entry.writer = rank;
    made(own, model);
    std::filesystem::rename(own + "/.metadata", folder + "/__" + number + ".metadata");
    std::filesystem::rename(own + "/__" + number + "_0.distcp",
                            folder + "/__" + number + "_0.distcp");
  }
  return folder;
}

}  // namespace shw::test
