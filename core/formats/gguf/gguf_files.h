// Which GGUF files of a folder are one model.
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
  std::vector<GgufFile> files;       // of the model, parts in their order
  std::vector<std::string> missing;  // parts that names promise
  std::vector<std::string> aside;    // other files of GGUF: a projector, an adapter
};

// kUnsupported where several models lie there.
Result<GgufFiles> find_gguf_files(const Directory& directory, Progress* progress);

}  // namespace shw
