// Formats that are recognised by name but not supported.
#pragma once

#include <span>
#include <string_view>

namespace shw {

// A recognised format that cannot be read.
struct UnsupportedFormat {
  std::string_view title;  // "an Orbax checkpoint (JAX)"
  bool (*matches)(std::string_view path, std::string_view name);
  std::string_view advice;
  // If true, a torch.save file in the same folder is still a checkpoint, or this file itself is
  // one.
  bool is_adjacent_file = false;
  // If true, no file with such a name is a torch.save file, whatever its suffix: "model.ncnn.bin".
  bool is_never_torch = false;
};
// Ordered: the first match determines the name.
std::span<const UnsupportedFormat> unsupported_formats();

}  // namespace shw
