// Formats that are only told by name.
#pragma once

#include <span>
#include <string_view>

namespace shw {

// Recognised and not read.
struct UnreadFormat {
  std::string_view title;  // "an Orbax checkpoint (JAX)"
  bool (*matches)(std::string_view path, std::string_view name);
  std::string_view advice;
  // A file of torch.save in the same folder is a checkpoint nevertheless, or this is one itself.
  bool lies_beside = false;
};
// The first that matches names it.
std::span<const UnreadFormat> unread_formats();

}  // namespace shw
