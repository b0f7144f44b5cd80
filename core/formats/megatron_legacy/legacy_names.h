// Names of the files that Megatron's `torch` format writes, one folder per model-parallel rank.
//
//   file = mp_rank_TT[_PPP][_EEE]/NAME        PPP: pipeline stage, EEE: expert rank, if several
//   NAME = model_optim_rng.pt | model_rng.pt | distrib_optim.pt | optim.pt
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/source.h"

namespace shw {

struct LegacyFolder {
  std::uint32_t tensor = 0;
  std::vector<std::uint32_t> more = {};  // numbers after the first
};
std::optional<LegacyFolder> parse_legacy_folder(std::string_view name);

// True for the two files that can contain a model.
bool is_legacy_model_file(std::string_view name);

// Coordinates of a model-parallel rank.
struct LegacyPlace {
  std::uint32_t tensor = 0, pipeline = 0, expert = 0;
  auto operator<=>(const LegacyPlace&) const = default;
};
struct LegacySizes {
  std::uint32_t tensor = 1, pipeline = 1, expert = 1;
};
// If there is one number besides the tensor rank, the sizes in args tell which axis it is.
LegacyPlace legacy_place(const LegacyFolder& folder, const LegacySizes& sizes);
std::string legacy_folder_name(const LegacyPlace& place, const LegacySizes& sizes);

// Top-level folders of ranks by name, each with its files.
std::map<std::string, std::vector<std::string>> legacy_folders(std::span<const Entry> entries);

}  // namespace shw
