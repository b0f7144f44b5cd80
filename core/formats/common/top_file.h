// Selects files at the top level of the checkpoint's folder, ignoring subfolders.
#pragma once

#include <string_view>

#include "core/io/source.h"

namespace shw {

inline bool is_at_top(std::string_view path) {
  return path.find('/') == std::string_view::npos;
}
inline bool is_top_file(const Entry& entry) {
  return entry.kind == EntryKind::kFile && is_at_top(entry.path);
}

}  // namespace shw
