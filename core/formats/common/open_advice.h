// The command that opens one of several checkpoints in a folder.
#pragma once

#include <string>

#include "core/base/printable.h"
#include "core/io/source.h"

namespace shw {

// "For example: `shardwright check run/a.gguf`."
inline std::string advice_to_open(const Directory& directory, const std::string& path) {
  const std::string& folder = directory.name();
  const bool has_slash = folder.empty() || folder.ends_with('/');
  return "For example: `shardwright check " + shell_word(folder + (has_slash ? "" : "/") + path) +
         "`.";
}

}  // namespace shw
