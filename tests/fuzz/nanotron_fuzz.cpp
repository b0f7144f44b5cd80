// Arbitrary text as the slices and shape in the metadata of a nanotron file.
#include <cstddef>
#include <cstdint>

#include "core/formats/nanotron/nanotron_slices.h"

using namespace shw;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)nanotron_shape(text);
  (void)nanotron_boxes(text, {4, 6}, {8, 6});
  return 0;
}
