#include "core/formats/dcp/wrapped_items.h"

#include <fmt/core.h>

#include "core/base/little_endian.h"
#include "core/formats/common/tensor_subclass.h"
#include "core/formats/common/torch_item.h"
#include "core/formats/pickle/pickle.h"
#include "core/io/read_whole.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

// Size limit: the pickle of a subclass of two tensors takes 600 bytes.
constexpr std::uint64_t kMaxSubclassPickle = 1 << 20;
// Size limit: the records version, byteorder and similar have at most 40 bytes.
constexpr std::uint64_t kMaxSmallRecord = 4096;
constexpr std::uint32_t kZipDescriptor = 0x08074b50;

std::optional<WrappedPart> read_part(const ZipReader& zip, const PickleTree& tree,
                                     const WrappedTensor& wrapped, bool big_endian) {
  const auto pickled = pickled_tensor(tree, wrapped.node, zip.source().name());
  if (!pickled || pickled->conjugate || pickled->negative) return std::nullopt;
  auto header = header_of(zip, *pickled, big_endian);
  const ZipEntry* record = header ? zip.find_storage(pickled->storage_key) : nullptr;
  if (record == nullptr || record->deflated) return std::nullopt;
  return WrappedPart{wrapped.name, pickled->requires_grad, std::move(*header)};
}

Error changed_record(const ZipReader& zip, const ZipEntry& entry) {
  return {ErrorKind::kDamaged,
          fmt::format("the record \"{}\" changed after it was written: its checksum differs",
                      entry.name),
          {zip.source().name(), zip.base() + entry.header_offset}};
}

// True if the checksum after the record, which this program verifies, equals the one in the
// directory, which torch verifies.
bool have_equal_checksums(const ZipReader& zip, const ZipEntry& entry) {
  const auto data = zip.data_offset(entry);
  if (!data || entry.length == 0) return data.has_value();
  const auto behind = read_bytes(zip.source(), *data + entry.stored_length, 8);
  return behind && (load_little<std::uint32_t>(*behind) != kZipDescriptor ||
                    load_little<std::uint32_t>(*behind, 4) == entry.crc);
}

// torch.load refuses the archive if the checksum of version or byteorder differs. Records of
// elements are checked with their tensors.
std::optional<Error> damage_in_other_records(const ZipReader& zip) {
  if (zip.lacks_crcs()) return std::nullopt;
  for (const ZipEntry& entry : zip.entries()) {
    const std::string_view name = std::string_view(entry.name).substr(entry.name.find('/') + 1);
    if (name.starts_with("data/") || entry.length > kMaxSmallRecord) {
      if (!have_equal_checksums(zip, entry)) return changed_record(zip, entry);
      continue;
    }
    const auto crc = zip.crc_of(entry, nullptr);
    if (!crc) return crc.error();
    if (*crc != entry.crc) return changed_record(zip, entry);
  }
  return std::nullopt;
}

}  // namespace

bool is_dense(const ItemHeader& header) {
  const auto elements = volume(header.sizes);
  return header.storage_offset == 0 && is_row_major(header.sizes, header.strides) && elements &&
         static_cast<std::uint64_t>(*elements) * size_of(header.dtype) == header.payload_length;
}

std::shared_ptr<const ByteSource> WrappedItems::file(FileId id) {
  auto [found, is_new] = files_.try_emplace(id);
  if (is_new && checkpoint_.directory() != nullptr) {
    auto source = checkpoint_.directory()->open(checkpoint_.file(id).path);
    if (source) found->second = std::move(*source);
  }
  return found->second;
}

std::optional<WrappedItem> WrappedItems::read(ChunkId chunk) {
  const auto place = checkpoint_.item(chunk);
  const auto source = place ? file(place->file) : nullptr;
  if (source == nullptr || place->offset < 0 || place->length <= 0) return std::nullopt;
  const auto begin = static_cast<std::uint64_t>(place->offset);
  const auto length = static_cast<std::uint64_t>(place->length);
  if (begin > source->size() || length > source->size() - begin) return std::nullopt;
  auto zip = ZipReader::open(source, begin, length);
  if (!zip) return std::nullopt;
  auto pickle = read_pickle_record(*zip, kMaxSubclassPickle);
  auto tree = pickle ? decode_pickle(*pickle, source->name()) : Result<PickleTree>(PickleTree());
  const auto big_endian = is_big_endian(*zip);
  if (!pickle || !tree || !big_endian) return std::nullopt;
  const TensorSubclass subclass = tensor_subclass(*tree, tree->root());
  if (subclass.tensors.empty() || !check_storages(*zip, *tree)) return std::nullopt;
  WrappedItem item{subclass.type, subclass.stands_for, {}, damage_in_other_records(*zip)};
  for (const WrappedTensor& wrapped : subclass.tensors) {
    auto part = read_part(*zip, *tree, wrapped, *big_endian);
    if (!part) return std::nullopt;
    item.parts.push_back(std::move(*part));
  }
  return item;
}

std::optional<Bytes> WrappedItems::elements(ChunkId chunk, const WrappedPart& part,
                                            std::uint64_t limit) {
  const ItemHeader& header = part.header;
  if (!is_dense(header) || header.payload_length > limit) return std::nullopt;
  const auto source = file(checkpoint_.item(chunk)->file);
  if (source == nullptr) return std::nullopt;
  auto bytes = read_bytes(*source, header.payload_offset, header.payload_length);
  return bytes ? std::optional(std::move(*bytes)) : std::nullopt;
}

}  // namespace shw
