// Names of files that are parts of one save: "model-00001-of-00003.safetensors".
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
  std::size_t digits = 0;  // of the count
};

// Nothing where the numbers are none, or make no sense.
std::optional<PartName> parse_part_name(std::string_view path, std::string_view suffix);

// The files that the names of others promise and that are not among them.
std::vector<std::string> parts_not_among(const std::vector<PartName>& parts,
                                         std::string_view suffix);

// All parts are there, and no index beside them: who goes by one finds no model. `parts`: their
// names, `names`: what transformers looks for.
Finding parts_without_index(const std::vector<std::string>& parts, const IndexNames& names,
                            Severity severity);

}  // namespace shw
