#include "core/formats/common/carried_storages.h"

#include <fmt/core.h>

#include "core/formats/common/torch_item.h"

namespace shw {
namespace {

// Limit for compressed storages, which are held in memory.
constexpr std::uint64_t kMaxInMemory = std::uint64_t{64} << 20;

// torch rejects tensors larger than their storage, also in a copy.
Status check_tensors(const CarriedFrom& from, NodeId value) {
  for (NodeId node : reachable_nodes_in_order(from.tree, value)) {
    if (!is_tensor_call(from.tree, node)) continue;
    auto tensor = pickled_tensor(from.tree, node, from.zip->source().name());
    Status is_whole;
    if (!tensor) {
      is_whole = tl::unexpected<Error>(std::move(tensor).error());
    } else if (auto header = header_of(*from.zip, *tensor, false); !header) {
      is_whole = tl::unexpected<Error>(std::move(header).error());
    }
    if (!is_whole && is_whole.error().kind != ErrorKind::kUnsupported) return is_whole;
  }
  return {};
}

Result<CarriedStorage> carry_storage(const CarriedFrom& from, const std::string& key,
                                     Progress* progress) {
  const ZipReader& zip = *from.zip;
  const ZipEntry* record = zip.find_storage(key);
  if (record == nullptr)
    return zip.damaged(0, "the archive has no record data/" + key.substr(0, 80));
  CarriedStorage out;
  out.length = record->length;
  SHW_TRY(out.offset, zip.data_offset(*record));
  SHW_TRY(out.crc, zip.crc_of(*record, progress));
  if (!zip.lacks_crcs() && out.crc != record->crc)
    return zip.damaged(record->header_offset,
                       fmt::format("the record {} does not match its checksum", record->name));
  if (record->deflated || from.file.empty()) {
    SHW_TRY(out.bytes, zip.read(*record, kMaxInMemory));
  } else {
    out.file = from.file;
  }
  return out;
}

}  // namespace

Result<CarriedValue> carry_value(const CarriedFrom& from, NodeId value, std::size_t budget,
                                 Progress* progress) {
  SHW_TRY(CarriedPickle carried,
          carried_pickle(from.tree, value, from.pickle, from.pickle_at, budget));
  CarriedValue out{std::move(carried.opcodes)};
  if (carried.storage_keys.empty()) return out;
  if (from.zip == nullptr)
    return fail(ErrorKind::kUnsupported, "refers to a storage, but is not in an archive");
  SHW_TRY(bool is_big, is_big_endian(*from.zip));
  if (is_big)
    return from.zip->unsupported(0, "holds a tensor that was saved on a big-endian machine");
  SHW_CHECK(check_tensors(from, value));
  for (const std::string& key : carried.storage_keys) {
    SHW_TRY(CarriedStorage storage, carry_storage(from, key, progress));
    out.storages.push_back(std::move(storage));
  }
  return out;
}

}  // namespace shw
