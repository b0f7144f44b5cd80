// Texts on ranks, meshes, files and origin of a checkpoint, shared by the HTML and Markdown reports
// before markup.
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
// Number of tensors by mesh and placements, as texts of the spec.
std::map<std::pair<std::string, std::string>, std::size_t> count_tensors_per_mesh(const Spec& spec);

struct FileLine {
  FileId file{};
  std::uint64_t tiles = 0;
  std::string state;                 // remarks; usually empty
  bool has_unreadable_data = false;  // expected data cannot be read
};
// Files with grave remarks first.
std::vector<FileLine> file_lines(const Checkpoint& checkpoint);

// "12 tensors, 3 of them rewritten; 8 elements of 1 tensor lost"
std::string tensor_outcomes_text(const Certificate& certificate);
// "nothing was lost"; true if that is good.
std::pair<std::string, bool> loss_verdict(const Certificate& certificate);
// Changes and losses in order: pairs of a verb and its object.
std::vector<std::pair<std::string, std::string>> certificate_lines(const Certificate& certificate);

}  // namespace shw
