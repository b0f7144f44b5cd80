// Parses file names of multi-file saves: "model-00001-of-00003.safetensors".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/common/weight_map.h"
#include "core/model/finding.h"

namespace shw {

struct PartName {
  std::string before;  // "model-"
  std::uint32_t number = 0, count = 0;
  std::size_t digits = 0;  // digits of the count
};

// nullopt if the numbers are missing or inconsistent.
std::optional<PartName> parse_part_name(std::string_view path, std::string_view suffix);

// Files that the names of `parts` imply but that do not exist.
std::vector<std::string> parts_not_among(const std::vector<PartName>& parts,
                                         std::string_view suffix);

// Finding: all parts exist without an index, so loaders that use one find no model. `names`: the
// index names that transformers looks for.
Finding parts_without_index_finding(const std::vector<std::string>& parts, const IndexNames& names,
                                    Severity severity);

}  // namespace shw
