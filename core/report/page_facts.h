// What the page and the Markdown say of ranks, meshes, files and how a checkpoint was made: words
// and rows, before either makes its own markup of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/model/checkpoint.h"
#include "core/repair/proof/certificate.h"
#include "core/spec/spec.h"

namespace shw {

// "8 ranks wrote tiles: from 1.2 MiB (rank 3) to 1.4 MiB (rank 0)"
std::string ranks_line(const Checkpoint& checkpoint);
// How many tensors have each mesh and its placements, in the words of the spec.
std::map<std::pair<std::string, std::string>, std::size_t> meshes_of(const Spec& spec);

struct FileLine {
  FileId file{};
  std::uint64_t tiles = 0;
  std::string state;      // what is to be known of it; mostly nothing
  bool is_grave = false;  // what is expected there cannot be read
};
// The grave ones first.
std::vector<FileLine> file_lines(const Checkpoint& checkpoint);

// "12 tensors, 3 of them written anew; 8 elements of 1 tensor lost"
std::string fates_line(const Certificate& certificate);
// "nothing was lost"; the second says whether that is good.
std::pair<std::string, bool> seal_words(const Certificate& certificate);
// What was done and what was lost, one after the other: a word, and what it was done to.
std::vector<std::pair<std::string, std::string>> certificate_lines(const Certificate& certificate);

}  // namespace shw
