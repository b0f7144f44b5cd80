// What an index of several files says, held against what lies in them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/formats/common/weight_map.h"
#include "core/model/builder.h"

namespace shw {

struct IndexedFile {
  std::string path;
  std::vector<std::pair<std::string, std::uint64_t>> tensors;  // names and bytes
};
struct IndexedFiles {
  std::string index;  // its path
  const WeightMap& map;
  std::vector<IndexedFile> files = {};          // that could be read
  std::optional<std::uint64_t> total = {};      // that it tells
  std::vector<std::string> missing_parts = {};  // that names promise and the index does not name
  bool can_be_written = false;                  // the index anew, by a repair
  std::vector<std::string> not_there = {};      // files that it names
  bool is_passed_over = false;  // transformers loads one file that lies beside it, and no other
};

// What the index promises and the files do not hold. Of a tensor whose file cannot be read its name
// is all that is left.
void check_index(CheckpointBuilder& builder, const IndexedFiles& indexed);
// What lies in the files that the index names, and not in the index.
void check_unnamed(CheckpointBuilder& builder, const IndexedFiles& indexed);
// transformers (5.24) opens what the index names, and never looks at its total.
void check_promises(CheckpointBuilder& builder, const IndexedFiles& indexed);

// Where files that an index names are not there: those that hold every tensor that it names. First
// one file, or all parts of one save, that do so alone (`single` before others); else the files
// that it names and all others together, where no tensor lies in two of them. Empty where there are
// none.
std::vector<std::string> files_that_hold(std::span<const IndexedFile> files, const WeightMap& map,
                                         std::string_view single);

// With an index only the files that it names count, and further parts of the same save: others are
// another form of the same weights.
std::vector<std::string> named_files(const std::vector<std::string>& all, const WeightMap& map);

}  // namespace shw
