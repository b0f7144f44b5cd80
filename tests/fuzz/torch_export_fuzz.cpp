// An archive of torch.export of arbitrary bytes, opened and read whole.
#include <cstddef>
#include <cstdint>

#include "core/formats/items/items.h"
#include "core/formats/torch_export/export_open.h"

using namespace shw;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto view = std::as_bytes(std::span(data, size));
  auto checkpoint = open_torch_export(
      memory_directory("fuzz", {{"m.pt2", Bytes(view.begin(), view.end())}}), nullptr);
  if (!checkpoint) return 0;
  for (std::uint32_t t = 0; t < (*checkpoint)->tensor_count(); ++t)
    (void)read_tensor(**checkpoint, TensorId{t}, 1 << 24);
  return 0;
}
