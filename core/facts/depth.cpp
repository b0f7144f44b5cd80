#include "core/facts/depth.h"

namespace shw {

std::string_view name(Depth depth) {
  switch (depth) {
    case Depth::kMetadata:
      return "metadata";
    case Depth::kHeaders:
      return "headers";
    case Depth::kData:
      break;
  }
  return "data";
}

}  // namespace shw
