// Finds the GGUF files of a folder that form one model.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/formats/gguf/gguf_header.h"

namespace shw {

inline constexpr std::string_view kGgufSuffix = ".gguf";

struct GgufFile {
  std::string path;
  Result<GgufHeader> header;
};

struct GgufFiles {
  std::vector<GgufFile> files;       // files of the model, in order of parts
  std::vector<std::string> missing;  // parts that the names imply but that do not exist
  std::vector<GgufFile> beside;      // the projector of images or sound, which runs with the model
  std::vector<std::string> aside;    // other GGUF files: an adapter, other quantisations
  bool has_others = false;           // `aside` has other quantisations of the model
};

// kUnsupported if the folder has several models. Of several quantisations of one model the one of
// the most bytes is chosen.
Result<GgufFiles> find_gguf_files(const Directory& directory, Progress* progress);

}  // namespace shw
