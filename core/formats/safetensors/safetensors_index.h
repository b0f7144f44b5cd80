// The index beside plain safetensors files: which tensor is in which, and how much they are.
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
// In place of an index and several files.
inline constexpr std::string_view kSafetensorsSingle = "model.safetensors";
inline constexpr std::uint64_t kMaxSafetensorsIndex = 256 << 20;

// The index of a directory: "model.safetensors.index.json", else the one of another stem
// (diffusers) where there is exactly one.
std::optional<std::string> find_safetensors_index(const Directory& directory);

// By how much all tensors together have grown or shrunk, and the files that each is in.
struct IndexChange {
  std::int64_t more_bytes = 0, more_elements = 0;
  std::int64_t bytes = 0;  // of all tensors afterwards
  std::map<std::string, std::vector<std::string>> homes;
  std::map<std::string, std::string, std::less<>> renamed;  // new names by old ones
};
// Gives entries their new names, moves entries that name another file than one of the tensor's to
// the first of them, and `metadata.total_size` and `total_parameters` by that much; where entries
// move, total_size becomes what it is. All else stays. Nothing where all of it does.
Result<std::optional<std::string>> changed_index(const ByteSource& source,
                                                 const IndexChange& change);

// The file that stands for a whole model in place of an index: "model.safetensors".
std::string single_beside(const std::string& index);

}  // namespace shw
