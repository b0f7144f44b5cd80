#include "core/formats/safetensors/safetensors_new.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/base/utf8.h"
#include "core/base/words.h"
#include "core/formats/common/safetensors_header.h"

namespace shw {
namespace {

std::uint64_t tensor_bytes(const OutputTensor& tensor) {
  std::uint64_t bytes = 0;
  for (const OutputTile& tile : tensor.tiles) bytes += bytes_of(tensor, tile).value_or(0);
  return bytes;
}

}  // namespace

namespace {

// Divides the tensors of one folder, in their order, into files of at most `most` bytes.
void split_folder_into_files(const Outputs& outputs, const PartLocation& home,
                             std::vector<std::size_t> tensors, std::vector<std::string>& paths) {
  const std::uint64_t most = outputs.shard_bytes == 0 ? UINT64_MAX : outputs.shard_bytes;
  std::vector<std::vector<std::size_t>> shards;
  std::vector<std::size_t> open;
  std::uint64_t filled = 0;
  auto close = [&] {
    if (!open.empty()) shards.push_back(std::exchange(open, {}));
    filled = 0;
  };
  for (std::size_t t : tensors) {
    std::uint64_t bytes = tensor_bytes(outputs.tensors[t]);
    if (bytes > most) {  // a file of its own; the current file is continued
      shards.push_back({t});
      continue;
    }
    if (bytes > most - filled) close();
    open.push_back(t);
    filled += bytes;
  }
  close();
  for (std::size_t i = 0; i < shards.size(); ++i) {
    for (std::size_t t : shards[i]) {
      paths[t] =
          home.folder + home.stem +
          (shards.size() == 1 ? ".safetensors"
                              : fmt::format("-{:05}-of-{:05}.safetensors", i + 1, shards.size()));
    }
  }
}

}  // namespace

std::vector<std::string> split_into_files(const Outputs& outputs, const PartLocations& homes) {
  std::vector<std::string> paths(outputs.tensors.size());
  for (std::size_t home = 0; home < homes.homes.size(); ++home) {
    std::vector<std::size_t> own;
    for (std::size_t t = 0; t < outputs.tensors.size(); ++t) {
      if (homes.of_tensor[t] == home) own.push_back(t);
    }
    split_folder_into_files(outputs, homes.homes[home], std::move(own), paths);
  }
  return paths;
}

std::string new_safetensors_index(const Outputs& outputs, const LaidOut& laid_out,
                                  const PartLocations& homes, const PartLocation& home) {
  std::uint64_t total = 0, elements = 0;
  std::set<std::uint32_t> files;
  nlohmann::json places = nlohmann::json::object();
  for (const WrittenTile& made : laid_out.made) {
    if (&homes.of(made.tensor) != &home) continue;
    const OutputTensor& tensor = outputs.tensors[made.tensor];
    total += made.length;
    elements += static_cast<std::uint64_t>(volume(tensor.shape).value_or(0));
    files.insert(made.file);
    places[name_in_file(tensor, home)] = laid_out.files[made.file].path.substr(home.folder.size());
  }
  if (files.size() < 2) return {};
  nlohmann::json index = {{"metadata", {{"total_parameters", elements}, {"total_size", total}}},
                          {"weight_map", std::move(places)}};
  return index.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace shw
