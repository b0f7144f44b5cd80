// Any bytes as a `.metadata`: the readers with and without shortcuts must give the same result.
#include <cstdlib>

#include "core/formats/dcp/dcp_read.h"

namespace {

using namespace shw;

Result<std::shared_ptr<const Checkpoint>> open(BytesView bytes, bool shortcuts) {
  DcpReadOptions options;
  options.shortcuts = shortcuts;
  return read_dcp_metadata(*memory_source(".metadata", Bytes(bytes.begin(), bytes.end())), nullptr,
                           nullptr, options);
}

bool same_item(const std::optional<ItemPlace>& a, const std::optional<ItemPlace>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return a->offset == b->offset && a->length == b->length;
}

bool same_rows(const Checkpoint& a, const Checkpoint& b) {
  if (a.tensor_count() != b.tensor_count() || a.chunk_count() != b.chunk_count() ||
      a.objects().size() != b.objects().size() ||
      a.unclaimed_records().size() != b.unclaimed_records().size() ||
      a.opening_findings().size() != b.opening_findings().size())
    return false;
  for (std::uint32_t t = 0; t < a.tensor_count(); ++t) {
    TensorId id{t};
    if (a.fqn(id) != b.fqn(id) || a.dtype(id) != b.dtype(id) || !same(a.shape(id), b.shape(id)))
      return false;
  }
  for (std::uint32_t c = 0; c < a.chunk_count(); ++c) {
    ChunkId id{c};
    if (!same(a.offsets(id), b.offsets(id)) || !same(a.sizes(id), b.sizes(id)) ||
        !same_item(a.item(id), b.item(id)))
      return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto bytes = std::as_bytes(std::span(data, size));
  auto quick = open(bytes, true);
  auto slow = open(bytes, false);
  if (quick.has_value() != slow.has_value()) std::abort();
  if (quick ? !same_rows(**quick, **slow) : quick.error().message != slow.error().message)
    std::abort();
  return 0;
}
