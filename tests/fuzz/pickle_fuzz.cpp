// Any bytes as a pickle: decoded, or an error with a place inside them.
#include <cstdlib>

#include "core/formats/pickle/pickle.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto bytes = std::as_bytes(std::span(data, size));
  auto tree = shw::decode_pickle(bytes, "fuzz");
  if (tree ? tree->end() > size : !tree.error().place.offset || tree.error().message.empty())
    std::abort();
  return 0;
}
