// Checkpoints of several folders as one: the components of a pipeline, a model
// and its optimizer. Chunks keep their own codecs, and files their places.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/formats/format_row.h"

namespace shw {

struct JoinedPart {
  std::shared_ptr<const Checkpoint> checkpoint;
  std::string folder;  // "" for the top
  std::string prefix;  // before the names of its tensors
};

// kUnsupported where two parts have a tensor of one name.
OpenedCheckpoint join_folders(std::shared_ptr<const Directory> around,
                              const std::vector<JoinedPart>& parts);

}  // namespace shw
