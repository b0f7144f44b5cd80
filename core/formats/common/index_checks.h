// Compares the index of a multi-file checkpoint with its files.
#pragma once

#include <cstddef>
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
  std::vector<std::pair<std::string, std::uint64_t>> tensors;  // names and sizes in bytes
};
struct IndexedFiles {
  std::string index;  // path of the index
  const WeightMap& map;
  std::vector<IndexedFile> files = {};          // readable files
  std::optional<std::uint64_t> total = {};      // recorded total size
  std::vector<std::string> missing_parts = {};  // implied by part names, but not listed
  bool can_be_written = false;                  // a repair can rewrite the index
  std::vector<std::string> not_there = {};      // listed files that do not exist
  bool is_ignored_by_transformers = false;  // transformers loads a single file next to it instead
};

// A tensor name of the files, with the first file that holds it.
struct StoredTensor {
  std::string_view name;
  std::size_t file = 0;  // in IndexedFiles::files
  std::uint64_t bytes = 0;
  bool is_named = false;                     // the index has it
  std::vector<std::size_t> more_files = {};  // further files that hold it
};
// The index and the files by one lookup per name: 90,000 names took 0.2 s when each check made its
// own tables.
struct MatchedIndex {
  explicit MatchedIndex(IndexedFiles files);
  MatchedIndex(const MatchedIndex&) = delete;
  MatchedIndex& operator=(const MatchedIndex&) = delete;

  static constexpr std::size_t kNotStored = SIZE_MAX;
  IndexedFiles indexed;
  std::vector<StoredTensor> held;  // in order of the files
  std::vector<std::size_t>
      entries;  // for each entry of the map: its position in `held`, or kNotStored
};

// Reports entries of the index that the files lack. Tensors of unreadable files are only known by
// name.
void check_index(CheckpointBuilder& builder, const MatchedIndex& matched);
// Reports tensors of listed files that the index lacks.
void report_tensors_not_in_index(CheckpointBuilder& builder, const MatchedIndex& matched);
// Checks what transformers (5.24) uses: it opens the listed files and ignores the total size.
void check_index_as_transformers(CheckpointBuilder& builder, const MatchedIndex& matched);

// If listed files are missing: other files that contain every listed tensor.
// Prefers one file or all parts of one save (`single` first); else the listed and
// all other files together, if no tensor is in two of them. Empty if there are
// none.
std::vector<std::string> files_containing(std::span<const IndexedFile> files, const WeightMap& map,
                                          std::string_view single);

// The files to read if there is an index: the listed ones and further parts of the same save. Other
// files are other forms of the same weights.
std::vector<std::string> files_of_index(const std::vector<std::string>& all, const WeightMap& map);

}  // namespace shw
