// A data file of arbitrary bytes under a chunk that points to all of it, plain and as zstd.
#include <cstddef>
#include <cstdint>

#include "core/formats/common/torch_file_tensors.h"
#include "core/formats/dcp/dcp_formats.h"
#include "core/formats/items/item_check.h"
#include "core/formats/items/items.h"
#include "core/model/builder.h"

using namespace shw;

namespace {

void read_all(const Bytes& file, bool compressed) {
  CheckpointBuilder builder;
  builder.set_format(kDcpFormat);
  builder.set_directory(memory_directory("fuzz", {{"__0_0.distcp", file}}));
  builder.add_tensor("w", Dtype::kFloat32, Extents{2, 3});
  ChunkId chunk =
      builder.add_chunk(Extents{0, 0}, Extents{2, 3},
                        {builder.file("__0_0.distcp"), 0, static_cast<std::int64_t>(file.size())});
  if (compressed) builder.set_transforms(chunk, {"stream.zstd/1"});
  auto checkpoint = builder.finish();
  (void)read_item_headers(*checkpoint, nullptr);
  (void)read_tensor(*checkpoint, TensorId{0});
  (void)check_item_data(*checkpoint, chunk, nullptr);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto view = std::as_bytes(std::span(data, size));
  Bytes file(view.begin(), view.end());
  read_all(file, false);
  read_all(file, true);
  auto source = memory_source("optimizer_rank_0.pt", file);
  if (auto side = read_torch_file_tensors(source)) {
    for (const TorchFileTensor& tensor : side->tensors)
      (void)read_torch_file_elements(*source, tensor);
  }
  return 0;
}
