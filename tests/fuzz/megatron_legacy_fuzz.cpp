// Arbitrary bytes as files of two ranks in Megatron's torch format, one after the other: opened,
// read whole, checked. Covers files before zip too.
#include <cstddef>
#include <cstdint>

#include "core/formats/items/item_check.h"
#include "core/formats/items/items.h"
#include "core/formats/megatron_legacy/legacy_open.h"

using namespace shw;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) return 0;
  auto view = std::as_bytes(std::span(data, size));
  const std::size_t cut = 4 + (std::size_t{data[0]} | std::size_t{data[1]} << 8) % (size - 3);
  const Bytes first(view.begin() + 4, view.begin() + static_cast<std::ptrdiff_t>(cut));
  const Bytes second(view.begin() + static_cast<std::ptrdiff_t>(cut), view.end());
  const char* folder = (data[2] & 1) != 0 ? "mp_rank_01" : "mp_rank_00_001";
  auto checkpoint = open_megatron_legacy(
      memory_directory("fuzz", {{"mp_rank_00/model_optim_rng.pt", first},
                                {std::string(folder) + "/model_optim_rng.pt", second}}),
      nullptr);
  if (!checkpoint) return 0;
  for (std::uint32_t t = 0; t < (*checkpoint)->tensor_count(); ++t)
    (void)read_tensor(**checkpoint, TensorId{t});
  for (std::uint32_t c = 0; c < (*checkpoint)->chunk_count(); ++c)
    (void)check_item_data(**checkpoint, ChunkId{c}, nullptr);
  return 0;
}
