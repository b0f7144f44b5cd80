// Layout of a DCP checkpoint. New tiles go into one new file per writer, as consecutive archives
// (or with gaps, if align_outputs() moves them); kept data stays in place. Archives are built
// around a gap for the payload; only the part after the gap needs the CRC.
#include "core/formats/dcp/dcp_format_writer.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "core/base/checked.h"
#include "core/formats/common/carried_pickle.h"
#include "core/formats/common/filled_attribute.h"
#include "core/formats/common/item_template.h"
#include "core/formats/dcp/dcp_form.h"
#include "core/formats/dcp/dcp_names.h"

namespace shw {
namespace {

// The archive bytes around tiles. One rank's tiles have a few dozen different shapes.
class ArchiveTemplates {
 public:
  Result<ItemTemplate*> of(const OutputTensor& tensor, const OutputTile& tile) {
    for (ItemTemplate& form : forms_) {
      if (form.are(tensor.dtype, tile.box.sizes)) return &form;
    }
    auto length = bytes_of(tensor, tile);
    if (!length)
      return fail(ErrorKind::kUsage, "one of its chunks is invalid",
                  Place{.file = {}, .tensor = tensor.fqn});
    SHW_TRY(ItemTemplate made, ItemTemplate::of(tensor.dtype, tile.box.sizes, *length));
    if (forms_.size() < kMaxForms) return &forms_.emplace_back(std::move(made));
    ItemTemplate& oldest = forms_[next_++ % kMaxForms];
    oldest = std::move(made);
    return &oldest;
  }

 private:
  static constexpr std::size_t kMaxForms = 32;
  std::vector<ItemTemplate> forms_;
  std::size_t next_ = 0;
};

// The archive of an entry given as a value, with gaps for its storages.
Result<HoleSkippingSink> archive_of(const OutputObject& object) {
  HoleSkippingSink sink;
  SHW_TRY(RenumberedOpcodes placed, renumber_memo_entries(object.plain, 0, 0));
  std::string pickle = "\x80\x02" + placed.opcodes + ".";
  TorchArchive archive{.pickle = payload_of(std::as_bytes(std::span(pickle)))};
  for (const CarriedStorage& storage : object.storages)
    archive.storages.push_back(hole_payload(storage.length, storage.crc));
  SHW_CHECK(write_torch_archive(sink, archive));
  return sink;
}

// Appends to a file; kUnsupported beyond the largest file size.
Result<std::uint64_t> append(LaidOut::File& file, std::uint64_t length, const std::string& fqn) {
  auto next = checked_add(file.size, length);
  if (!next)
    return fail(ErrorKind::kUnsupported, "would be too large", Place{.file = {}, .tensor = fqn});
  return std::exchange(file.size, *next);
}

// "__<rank>_<n>.distcp" with the lowest unused n of the rank.
std::string next_distcp_name(const Checkpoint* source, std::uint32_t rank) {
  std::string prefix = fmt::format("__{}_", rank);
  std::uint64_t next = 0;
  for (const FileRow& file : source == nullptr ? std::span<const FileRow>{} : source->files()) {
    std::string_view name = std::string_view(file.path).substr(file.path.rfind('/') + 1);
    if (!name.starts_with(prefix)) continue;
    std::uint64_t n = 0;
    auto [end, code] = std::from_chars(name.data() + prefix.size(), name.data() + name.size(), n);
    if (code == std::errc{} && end != name.data() + prefix.size() && n < UINT64_MAX)
      next = std::max(next, n + 1);
  }
  return distcp_name(rank, next);
}

Result<DcpItem> dcp_item_of_kept_place(const Outputs& outputs,
                                       const std::optional<ItemPlace>& place,
                                       std::string_view fqn) {
  auto offset = place ? narrow<std::uint64_t>(place->offset) : std::nullopt;
  auto length = place ? narrow<std::uint64_t>(place->length) : std::nullopt;
  const Checkpoint* source = source_if_of_writer_format(outputs, kDcpWriter);
  if (!offset || !length || source == nullptr) {
    return fail(ErrorKind::kUnsupported,
                "has a chunk without a usable storage record, which cannot be written again",
                Place{.file = {}, .tensor = std::string(fqn)});
  }
  return DcpItem{source->file(place->file).path, *offset, *length};
}

// Places items consecutively in one new file per writer.
struct FileLayoutBuilder {
  const Outputs& outputs;
  const Checkpoint* source;  // provides details of the form
  LaidOut out{};
  std::unordered_map<std::uint32_t, std::uint32_t> file_of{};  // by writer
  ArchiveTemplates forms{};
  std::vector<std::size_t> last_copy{};  // by file

  // Reserves `length` bytes at the end of the writer's file.
  Result<LaidOut::Item> add_item(std::uint32_t writer, std::uint64_t length,
                                 const std::string& fqn) {
    auto [found, added] = file_of.try_emplace(writer, static_cast<std::uint32_t>(out.files.size()));
    if (added)
      out.files.push_back({next_distcp_name(outputs.all_new ? nullptr : source, writer), 0});
    SHW_TRY(std::uint64_t offset, append(out.files[found->second], length, fqn));
    return LaidOut::Item{found->second, offset, length};
  }

  // Merges copies that are contiguous in source and output.
  void add_copy(OutputCopy copy) {
    last_copy.resize(out.files.size(), SIZE_MAX);
    std::size_t& at = last_copy[copy.file];
    OutputCopy* last = at == SIZE_MAX ? nullptr : &out.copies[at];
    if (last != nullptr && last->offset + last->length == copy.offset &&
        last->begin + last->length == copy.begin && last->from == copy.from) {
      last->length += copy.length;
      return;
    }
    at = out.copies.size();
    out.copies.push_back(std::move(copy));
  }

  // Copies an item of the source unchanged.
  Result<LaidOut::Item> copy_item(std::uint32_t writer, const std::optional<ItemPlace>& place,
                                  const std::string& fqn) {
    SHW_TRY(DcpItem from, dcp_item_of_kept_place(outputs, place, fqn));
    SHW_TRY(LaidOut::Item item, add_item(writer, from.length, fqn));
    add_copy({item.file, item.offset, std::move(from.path), from.offset, from.length});
    return item;
  }

  Status add_object(const OutputObject& object) {
    if (!object.plain.empty()) {
      SHW_TRY(HoleSkippingSink archive, archive_of(object));
      SHW_TRY(LaidOut::Item item, add_item(0, archive.position(), object.fqn));
      for (HoleSkippingSink::Part& part : archive.parts)
        out.before.push_back({item.file, item.offset + part.offset, std::move(part.bytes)});
      for (std::size_t i = 0; i < object.storages.size(); ++i)
        place_storage(object.storages[i], item.file, item.offset + archive.holes[i], out);
      out.given.push_back(item);
    } else if (outputs.all_new) {
      SHW_TRY(LaidOut::Item item, copy_item(0, object.place, object.fqn));
      out.objects.push_back(item);
    }
    return {};
  }

  Status add_tile(std::uint32_t tensor_index, std::uint32_t tile_index) {
    const OutputTensor& tensor = outputs.tensors[tensor_index];
    const OutputTile& tile = tensor.tiles[tile_index];
    if (tile.kept) {
      if (!outputs.all_new) return {};
      SHW_TRY(LaidOut::Item item,
              copy_item(tile.writer, kept_item_place(outputs, tile), tensor.fqn));
      out.kept.push_back(item);
      return {};
    }
    SHW_TRY(const ItemTemplate* form, forms.of(tensor, tile));
    SHW_TRY(LaidOut::Item item, add_item(tile.writer, form->length(), tensor.fqn));
    out.made.push_back({tensor_index, tile_index, item.file, item.offset + form->payload(),
                        *bytes_of(tensor, tile), item.offset, item.length});
    return {};
  }
};

// Counting sort: comparisons of millions of tiles would be cache misses.
void sort_by_file(LaidOut& out) {
  std::vector<std::uint32_t> next(out.files.size() + 1, 0);
  for (const WrittenTile& made : out.made) ++next[made.file + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  out.made_by_file.resize(out.made.size());
  for (std::uint32_t i = 0; i < out.made.size(); ++i)
    out.made_by_file[next[out.made[i].file]++] = i;
}

Result<LaidOut> lay_out_dcp(const Outputs& outputs) {
  FileLayoutBuilder laying{outputs, source_if_of_writer_format(outputs, kDcpWriter)};
  // torch writes non-tensor entries first, from rank 0.
  for (const OutputObject& object : outputs.objects) SHW_CHECK(laying.add_object(object));
  for (std::uint32_t t = 0; t < outputs.tensors.size(); ++t) {
    for (std::uint32_t i = 0; i < outputs.tensors[t].tiles.size(); ++i)
      SHW_CHECK(laying.add_tile(t, i));
  }
  LaidOut& out = laying.out;
  out.made.shrink_to_fit();
  sort_by_file(out);
  const Checkpoint* source = laying.source;
  if (source == nullptr || source->directory() == nullptr) return std::move(out);
  for (const FileRow& file : source->files()) {
    if (is_dcp_metadata(file.path)) out.replaced.insert(file.path);
  }
  return std::move(out);
}

Status seal_dcp_tiles(const Outputs& outputs, const LaidOut& laid_out,
                      std::span<const std::uint32_t> tiles,
                      std::span<const std::uint32_t> checksums, const WriteBytesAt& put) {
  if (checksums.size() != tiles.size())
    return fail(ErrorKind::kUsage, "every chunk needs its checksum");
  ArchiveTemplates forms;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const WrittenTile& made = laid_out.made[tiles[i]];
    const OutputTensor& tensor = outputs.tensors[made.tensor];
    SHW_TRY(ItemTemplate * form, forms.of(tensor, tensor.tiles[made.tile]));
    SHW_CHECK(put(made.item_offset, form->before()));
    SHW_CHECK(put(made.offset + made.length, form->behind(checksums[i])));
  }
  return {};
}

Result<std::vector<OutputBytes>> seal_archives(const Outputs& outputs, const LaidOut& laid_out,
                                               std::uint32_t file,
                                               std::span<const std::uint32_t> checksums) {
  if (checksums.size() != laid_out.made.size())
    return fail(ErrorKind::kUsage, "every chunk needs its checksum");
  std::vector<std::uint32_t> tiles, own;
  auto before = [&](std::uint32_t i, std::uint32_t other) { return laid_out.made[i].file < other; };
  auto first =
      std::lower_bound(laid_out.made_by_file.begin(), laid_out.made_by_file.end(), file, before);
  for (; first != laid_out.made_by_file.end() && laid_out.made[*first].file == file; ++first) {
    tiles.push_back(*first);
    own.push_back(checksums[*first]);
  }
  std::vector<OutputBytes> around;
  SHW_CHECK(seal_dcp_tiles(outputs, laid_out, tiles, own,
                           [&](std::uint64_t offset, BytesView bytes) -> Status {
                             around.push_back({file, offset, {bytes.begin(), bytes.end()}});
                             return {};
                           }));
  return around;
}

Result<DcpItem> item_of_tile(const Outputs& outputs, const OutputTensor& tensor,
                             const OutputTile& tile) {
  SHW_TRY(DcpItem item,
          dcp_item_of_kept_place(outputs, kept_item_place(outputs, tile), tensor.fqn));
  auto transforms = outputs.source->transforms(*tile.kept);
  item.transforms.assign(transforms.begin(), transforms.end());
  return item;
}

// Changes an item's record to the place of its copy.
void set_item_to_copied_place(const LaidOut& laid_out,
                              std::vector<LaidOut::Item>::const_iterator& next, DcpItem& item) {
  item.path = laid_out.files[next->file].path;
  item.offset = next->offset;
  ++next;
}

// Iterates over the tiles of a tensor with their output items.
class TensorChunks {
 public:
  TensorChunks(const Outputs& outputs, const LaidOut& laid_out)
      : outputs_(outputs), laid_out_(laid_out) {
    std::uint32_t made = 0;
    std::size_t kept = 0;
    first_.reserve(outputs.tensors.size());
    for (std::uint32_t t = 0; t < outputs.tensors.size(); ++t) {
      first_.push_back({made, kept});
      const std::uint32_t before = made;
      while (made < laid_out.made.size() && laid_out.made[made].tensor == t) ++made;
      kept += outputs.tensors[t].tiles.size() - (made - before);
    }
  }

  Result<std::vector<DcpChunk>> of(std::size_t index) const {
    const OutputTensor& tensor = outputs_.tensors[index];
    auto made = laid_out_.made.begin() + first_[index].made;
    const auto last_made = index + 1 < first_.size()
                               ? laid_out_.made.begin() + first_[index + 1].made
                               : laid_out_.made.end();
    auto kept = laid_out_.kept.begin();
    if (outputs_.all_new) kept += static_cast<std::ptrdiff_t>(first_[index].kept);
    std::vector<DcpChunk> chunks;
    chunks.reserve(tensor.tiles.size());
    for (OutputTile tile : tensor.tiles) {
      DcpItem item;
      if (tile.kept) {
        SHW_TRY(item, item_of_tile(outputs_, tensor, tile));
        if (outputs_.all_new) set_item_to_copied_place(laid_out_, kept, item);
      } else {
        if (made == last_made)
          return fail(ErrorKind::kUsage, "a new chunk has no position in the file",
                      Place{.file = {}, .tensor = tensor.fqn});
        item = {laid_out_.files[made->file].path, made->item_offset, made->item_length};
        ++made;
      }
      chunks.push_back({std::move(tile.box.offsets), std::move(tile.box.sizes), std::move(item)});
    }
    return chunks;
  }

 private:
  struct First {
    std::uint32_t made = 0;  // index in LaidOut::made of the tensor's first new chunk
    std::size_t kept = 0;
  };
  const Outputs& outputs_;
  const LaidOut& laid_out_;
  std::vector<First> first_;  // by tensor
};

// The metadata without the tensors' chunks.
Result<DcpMetadata> metadata_without_chunks(const Outputs& outputs, const LaidOut& laid_out) {
  DcpMetadata metadata;
  metadata.checkpoint_id = outputs.checkpoint_id;
  metadata.save_id = outputs.save_id;
  metadata.reordered = outputs.reordered;
  metadata.only_in_planner = outputs.only_in_planner;
  metadata.plain_attributes = outputs.attributes;
  std::string filled = outputs.filled.empty() ? std::string() : outputs.filled_text(outputs.filled);
  if (!filled.empty())
    metadata.plain_attributes.emplace_back(kFilledAttribute, pickled_text(filled));
  metadata.tensors.reserve(outputs.tensors.size());
  for (const OutputTensor& tensor : outputs.tensors)
    metadata.tensors.push_back(
        {tensor.fqn, tensor.dtype, tensor.requires_grad, tensor.shape, {}, tensor.path});
  auto given = laid_out.given.begin();
  auto moved = laid_out.objects.begin();
  for (const OutputObject& object : outputs.objects) {
    DcpItem item;
    if (object.plain.empty()) {
      SHW_TRY(item, dcp_item_of_kept_place(outputs, object.place, object.fqn));
      if (outputs.all_new) set_item_to_copied_place(laid_out, moved, item);
      item.transforms = object.transforms;
    } else {
      if (given == laid_out.given.end())
        return fail(ErrorKind::kUsage, "a value has no position in the file",
                    Place{.file = {}, .tensor = object.fqn});
      item = {laid_out.files[given->file].path, given->offset, given->length};
      ++given;
    }
    metadata.objects.push_back({object.fqn, std::move(item), object.path});
  }
  for (const OutputUnclaimedRecord& unclaimed : outputs.unclaimed_records) {
    SHW_TRY(DcpItem item, dcp_item_of_kept_place(outputs, unclaimed.place, unclaimed.fqn));
    item.transforms = unclaimed.transforms;
    metadata.unclaimed_records.push_back({unclaimed.fqn, unclaimed.offsets, std::move(item)});
  }
  return metadata;
}

Status seal_dcp(Outputs outputs, const LaidOut& laid_out, const CreateFile& create) {
  PickledForm form;
  const Checkpoint* source = source_if_of_writer_format(outputs, kDcpWriter);
  if (source != nullptr && source->directory() != nullptr) {
    SHW_TRY(form, read_pickled_form(*source->directory()));
  }
  SHW_TRY(DcpMetadata metadata, metadata_without_chunks(outputs, laid_out));
  const TensorChunks chunks(outputs, laid_out);
  metadata.chunks_of = [&](std::size_t tensor) { return chunks.of(tensor); };
  SHW_TRY(auto sink, create(std::string(kDcpMetadataName)));
  SHW_CHECK(write_dcp_metadata_as(form, metadata, *sink));
  return sink->finish();
}

}  // namespace

Result<DcpMetadata> dcp_metadata_of(const Outputs& outputs, const LaidOut& laid_out) {
  SHW_TRY(DcpMetadata metadata, metadata_without_chunks(outputs, laid_out));
  const TensorChunks chunks(outputs, laid_out);
  for (std::size_t t = 0; t < metadata.tensors.size(); ++t) {
    SHW_TRY(metadata.tensors[t].chunks, chunks.of(t));
  }
  return metadata;
}

constexpr FormatWriter kDcpWriter{lay_out_dcp, seal_archives, seal_dcp,
                                  true,        nullptr,       seal_dcp_tiles};

}  // namespace shw
