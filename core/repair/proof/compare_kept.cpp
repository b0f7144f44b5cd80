#include "core/repair/proof/compare_kept.h"

#include <functional>

#include "core/formats/items/item_hash.h"
#include "core/formats/items/items.h"
#include "core/io/gather.h"
#include "core/tensor/strided_copy.h"
#include "core/tiles/blocks.h"

namespace shw {
namespace {

tl::unexpected<Error> differs(const Comparing& comparing, const std::string& what) {
  const Checkpoint& written = comparing.written.checkpoint();
  std::string_view fqn = written.fqn(written.tensor_of(comparing.at));
  return fail(ErrorKind::kIo, what + " differs from its source after it was written",
              Place{.file = {}, .tensor = std::string(fqn)});
}

// Reads the expected bytes of a box, and knows whether they are all zeros.
struct WantedPart {
  std::function<Status(const Box&, Bytes& to)> read;
  std::function<bool(const Box&)> is_zeros = [](const Box&) { return false; };
};

// Reads the whole tile once, in blocks; holes that should be zeros are skipped.
Status each_block(const Comparing& comparing, const WantedPart& wanted) {
  const Checkpoint& result = comparing.written.checkpoint();
  Dtype dtype = result.dtype(result.tensor_of(comparing.at));
  const Extents sizes = copy_of(result.sizes(comparing.at));
  const std::int64_t most = kComparedBytes / static_cast<std::int64_t>(size_of(dtype));
  Blocks blocks{sizes, block_sizes(sizes, most, {})};
  std::int64_t seen = 0;
  Bytes there, expected;
  while (blocks.next()) {
    if (is_cancelled(comparing.progress)) return cancelled_error();
    Box part = blocks.block;
    const std::int64_t elements = *volume(part.sizes);
    seen += elements;
    if (comparing.written.is_hole(comparing.at, part) && wanted.is_zeros(part)) {
      if (comparing.progress != nullptr)
        comparing.progress->add(static_cast<std::uint64_t>(elements) * size_of(dtype));
      if (comparing.compared != nullptr) *comparing.compared += elements;
      continue;
    }
    SHW_CHECK(comparing.written.read(comparing.at, part, there));
    SHW_CHECK(wanted.read(part, expected));
    if (comparing.progress != nullptr) comparing.progress->add(there.size());
    if (same_bytes(there, expected)) {
      if (comparing.compared != nullptr) *comparing.compared += elements;
      continue;
    }
    if (comparing.mismatch != nullptr && there.size() == expected.size()) {
      for (std::size_t d = 0; d < part.offsets.size(); ++d)
        part.offsets[d] += result.offsets(comparing.at)[d];
      *comparing.mismatch = first_mismatch(dtype, part, there, expected);
    }
    return differs(comparing, "a chunk");
  }
  return seen == volume(sizes) ? Status{} : Status(differs(comparing, "a chunk"));
}

// Compares byte by byte, for items without separable elements.
Status compare_items(const Comparing& comparing, const ItemPlace& before) {
  const Checkpoint& result = comparing.written.checkpoint();
  auto now = result.item(comparing.at);
  if (!now) return differs(comparing, "a chunk");
  SHW_TRY(std::string wanted, hash_item(comparing.source.checkpoint(), before, comparing.progress));
  SHW_TRY(std::string there, hash_item(result, *now, comparing.progress));
  if (there != wanted) return differs(comparing, "the item of a chunk");
  if (comparing.compared != nullptr)
    *comparing.compared += volume(result.sizes(comparing.at)).value_or(0);
  return {};
}

// Compares the item of the source with the written tile, whatever the item's record says.
Status compare_item(const Comparing& comparing, ChunkId item) {
  const Checkpoint &source = comparing.source.checkpoint(),
                   &result = comparing.written.checkpoint();
  auto header = comparing.source.header(item);
  Box box = whole(result.sizes(comparing.at));
  bool is_plain = header && same(header->sizes, box.sizes) &&
                  header->dtype == result.dtype(result.tensor_of(comparing.at));
  auto place = source.item(item);
  if (is_plain) {
    WantedPart wanted;
    wanted.read = [&](const Box& part, Bytes& to) {
      return comparing.source.read_item(item, part, to);
    };
    wanted.is_zeros = [&](const Box& part) { return comparing.source.is_hole(item, part); };
    return each_block(comparing, wanted);
  }
  if (!place) return differs(comparing, "a chunk without an item");
  return compare_items(comparing, *place);
}

}  // namespace

Status compare_kept(const Comparing& comparing, const TargetChunk& tile) {
  const ChunkId item = *tile.kept;
  if (tile.more == nullptr || !tile.more->place) return compare_item(comparing, item);
  const ItemPlace elsewhere = *tile.more->place;
  const Checkpoint& source = comparing.source.checkpoint();
  auto header = read_orphan_header(source, item, elsewhere);
  std::size_t element = size_of(source.dtype(source.tensor_of(item)));
  bool is_plain =
      header && same(header->sizes, tile.box.sizes) && !header->compressed && !header->big_endian &&
      !header->conjugate && !header->negative && header->storage_offset == 0 &&
      header->strides == row_major_strides(header->sizes) && size_of(header->dtype) == element;
  if (!is_plain) return compare_items(comparing, elsewhere);
  SHW_TRY(auto file, source.directory()->open(source.file(elsewhere.file).path));
  WantedPart wanted;
  wanted.read = [&](const Box& part, Bytes& to) {
    return read_box(*file, header->payload_offset, tile.box.sizes, part, element, to);
  };
  return each_block(comparing, wanted);
}

}  // namespace shw
