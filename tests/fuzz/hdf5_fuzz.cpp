// An HDF5 file of arbitrary bytes, opened and read whole.
#include <cstddef>
#include <cstdint>

#include "core/formats/hdf5/hdf5_open.h"
#include "core/formats/items/items.h"

using namespace shw;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto view = std::as_bytes(std::span(data, size));
  auto checkpoint =
      open_hdf5(memory_directory("fuzz", {{"m.h5", Bytes(view.begin(), view.end())}}), nullptr);
  if (!checkpoint) return 0;
  for (std::uint32_t t = 0; t < (*checkpoint)->tensor_count(); ++t)
    (void)read_tensor(**checkpoint, TensorId{t});
  return 0;
}
