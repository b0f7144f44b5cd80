// The index of plain safetensors files: the file of each tensor, and the total size.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/io/source.h"

namespace shw {

inline constexpr std::string_view kSafetensorsIndex = "model.safetensors.index.json";
// Used instead of an index and several files.
inline constexpr std::string_view kSafetensorsSingle = "model.safetensors";
inline constexpr std::uint64_t kMaxSafetensorsIndex = 256 << 20;

// The index of a directory: "model.safetensors.index.json", else one with another stem (diffusers)
// if there is only one.
std::optional<std::string> find_safetensors_index(const Directory& directory);

// Change of the total size, and the files of each tensor.
struct IndexChange {
  std::int64_t more_bytes = 0, more_elements = 0;
  std::int64_t bytes = 0;  // total size of all tensors afterwards
  std::map<std::string, std::vector<std::string>> homes;
  std::map<std::string, std::string, std::less<>> renamed;  // new names by old ones
};
// Applies new names, changes entries whose file has none of the tensor to the first file that has
// it, and adjusts `metadata.total_size` and `total_parameters`. If entries change files, total_size
// is set to the actual one. Empty if nothing changes.
Result<std::optional<std::string>> changed_index(const ByteSource& source,
                                                 const IndexChange& change);

// The single file that a model with this index would be: "model.safetensors".
std::string single_file_name(const std::string& index);

}  // namespace shw
