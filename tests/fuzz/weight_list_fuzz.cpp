// A list of arrays of arbitrary bytes under the names of the formats, opened and read whole.
#include <cstddef>
#include <cstdint>

#include "core/formats/items/items.h"
#include "core/formats/weight_list/weight_list_table.h"

using namespace shw;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto view = std::as_bytes(std::span(data, size));
  for (const auto& [row, name] :
       {std::pair(&kCtranslate2Row, "model.bin"), std::pair(&kMindsporeRow, "net.ckpt"),
        std::pair(&kOpenvinoRow, "model.xml"), std::pair(&kOnnxRow, "model.onnx")}) {
    auto checkpoint =
        row->open(memory_directory("fuzz", {{name, Bytes(view.begin(), view.end())}}), nullptr);
    if (!checkpoint) continue;
    for (std::uint32_t t = 0; t < (*checkpoint)->tensor_count(); ++t)
      (void)read_tensor(**checkpoint, TensorId{t}, 1 << 24);
  }
  return 0;
}
