// Names of the files that Megatron's `torch` format writes, one folder per model-parallel rank.
//
//   file = mp_rank_TT[_PPP][_EEE]/NAME        PPP where pipeline stages are several, EEE experts
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
  std::vector<std::uint32_t> more = {};  // the numbers behind it
};
std::optional<LegacyFolder> parse_legacy_folder(std::string_view name);

// One of the two that hold a model.
bool is_legacy_model_file(std::string_view name);

// The places of one save on the axes of model parallelism.
struct LegacyPlace {
  std::uint32_t tensor = 0, pipeline = 0, expert = 0;
  auto operator<=>(const LegacyPlace&) const = default;
};
struct LegacySizes {
  std::uint32_t tensor = 1, pipeline = 1, expert = 1;
};
// With one number behind the first it says which axis that is by the sizes that args have.
LegacyPlace legacy_place(const LegacyFolder& folder, const LegacySizes& sizes);
std::string legacy_folder_name(const LegacyPlace& place, const LegacySizes& sizes);

// The folders at the top that hold a rank's file, by name, each with its files.
std::map<std::string, std::vector<std::string>> legacy_folders(std::span<const Entry> entries);

}  // namespace shw
