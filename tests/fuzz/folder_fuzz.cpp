// A folder of one of the formats, of which some bytes are changed: opened, read whole, checked. The
// input names the folder and the file, then where the bytes go and whether the file ends there.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "core/format_folders.h"
#include "core/formats/items/item_check.h"
#include "core/formats/items/items.h"
#include "core/formats/open.h"

using namespace shw;
using namespace shw::test;

namespace {

constexpr std::size_t kHead = 6;

const std::vector<FolderFiles>& folders() {
  static const std::vector<FolderFiles> all = [] {
    std::vector<FolderFiles> read;
    for (const FormatFolder& folder : kFormatFolders) {
      auto files = files_of_format(SHW_TEST_DATA, folder);
      if (!files || files->empty()) std::abort();
      read.push_back(std::move(*files));
    }
    return read;
  }();
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < kHead) return 0;
  FolderFiles files = folders()[data[0] % folders().size()];
  Bytes& bytes = files[data[1] % files.size()].second;
  if (bytes.empty()) return 0;
  const std::size_t place = std::size_t{data[2]} << 16 | std::size_t{data[3]} << 8 | data[4];
  std::size_t at = place % bytes.size();
  for (std::size_t i = kHead; i < size && at < bytes.size(); ++i, ++at)
    bytes[at] = static_cast<std::byte>(data[i]);
  if ((data[5] & 1) != 0) bytes.resize(at);
  auto checkpoint = open_checkpoint(memory_directory("fuzz", std::move(files)));
  if (!checkpoint) return 0;
  for (std::uint32_t t = 0; t < (*checkpoint)->tensor_count(); ++t)
    (void)read_tensor(**checkpoint, TensorId{t}, 1 << 20);
  for (std::uint32_t c = 0; c < (*checkpoint)->chunk_count(); ++c)
    (void)check_item_data(**checkpoint, ChunkId{c}, nullptr);
  return 0;
}
