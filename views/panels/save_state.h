// User interface state of the panel that says where a small file is written.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/verbs/new_file.h"

namespace shw {

struct SaveState {
  bool open = false;
  verbs::NewFile file = verbs::NewFile::kReport;
  std::string path = {};                                   // as typed
  std::shared_ptr<const verbs::NewFilePlace> before = {};  // of an earlier opening
  std::optional<std::string> asked = {};                   // the path that was last examined
  int frames = 0;                                          // since it was opened
  float height = 240;                                      // of the last frame
};

}  // namespace shw
