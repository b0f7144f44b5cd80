// A torch.save file of arbitrary bytes: opened, read whole, checked, and its objects written again.
#include <cstddef>
#include <cstdint>

#include "core/formats/items/item_check.h"
#include "core/formats/items/items.h"
#include "core/formats/plain_value.h"
#include "core/formats/torch_file/torch_file.h"

using namespace shw;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto view = std::as_bytes(std::span(data, size));
  auto checkpoint = open_torch_file(
      memory_directory("fuzz", {{"model.pt", Bytes(view.begin(), view.end())}}), nullptr);
  if (!checkpoint) return 0;
  for (std::uint32_t t = 0; t < (*checkpoint)->tensor_count(); ++t)
    (void)read_tensor(**checkpoint, TensorId{t});
  for (std::uint32_t c = 0; c < (*checkpoint)->chunk_count(); ++c)
    (void)check_item_data(**checkpoint, ChunkId{c}, nullptr);
  for (std::size_t i = 0; i < (*checkpoint)->objects().size(); ++i) {
    (void)read_plain_value(**checkpoint, i, 1 << 20);
    (void)read_plain_opcodes(**checkpoint, i);
  }
  return 0;
}
