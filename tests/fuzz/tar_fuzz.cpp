// A tar archive of arbitrary bytes: its files are listed, and the checkpoint in it is opened.
#include <cstddef>
#include <cstdint>

#include "core/formats/tar/nemo_open.h"

using namespace shw;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto view = std::as_bytes(std::span(data, size));
  (void)kNemoRow.open(memory_directory("fuzz", {{"m.nemo", Bytes(view.begin(), view.end())}}),
                      nullptr);
  return 0;
}
