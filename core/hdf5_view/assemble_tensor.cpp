#include "core/hdf5_view/assemble_tensor.h"

#include "core/formats/items/item_cursor.h"
#include "core/tiles/blocks.h"

namespace shw {
namespace {

constexpr std::int64_t kBlockBytes = 32 << 20;

}  // namespace

Status put_together(const Checkpoint& checkpoint, const std::vector<ChunkId>& chunks,
                    const Hdf5Writer::WriteBox& write, std::optional<Error>& unreadable,
                    Progress* progress) {
  ItemCursor reader(checkpoint);
  for (ChunkId chunk : chunks) {
    ExtentsView sizes = checkpoint.sizes(chunk), offsets = checkpoint.offsets(chunk);
    const std::int64_t element = size_of(checkpoint.dtype(checkpoint.tensor_of(chunk)));
    Blocks blocks{copy_of(sizes), block_sizes(sizes, kBlockBytes / element, {})};
    while (blocks.next()) {
      if (is_cancelled(progress)) return cancelled_error();
      auto bytes = reader.read(chunk, blocks.block);
      if (!bytes) {
        unreadable = bytes.error();
        return tl::unexpected<Error>(std::move(bytes).error());
      }
      Box at = blocks.block;
      for (std::size_t d = 0; d < at.offsets.size(); ++d) at.offsets[d] += offsets[d];
      SHW_CHECK(write(at, *bytes));
    }
  }
  return {};
}

}  // namespace shw
