// A DCP checkpoint laid out: new tiles go into one new file a writer, an archive a tile, one after
// the other; what is kept stays where it lies. An archive is made around a hole of the payload's
// length; only what follows the hole knows the CRC.
#include "core/formats/dcp/dcp_format_writer.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "core/base/checked.h"
#include "core/formats/common/filled_attribute.h"
#include "core/formats/dcp/dcp_form.h"
#include "core/formats/dcp/dcp_names.h"

namespace shw {
namespace {

// Keeps what is written, in two parts: before and after the hole.
class AroundHole final : public ByteSink {
 public:
  Status write(BytesView bytes) override {
    Bytes& part = hole_ ? after : before;
    part.insert(part.end(), bytes.begin(), bytes.end());
    return {};
  }
  Status skip(std::uint64_t length) override {
    hole_ = length;
    return {};
  }
  std::uint64_t position() const override {
    return before.size() + hole_.value_or(0) + after.size();
  }
  Status finish() override { return {}; }

  Bytes before, after;

 private:
  std::optional<std::uint64_t> hole_;
};

Result<AroundHole> archive_of(const OutputTensor& tensor, const OutputTile& tile,
                              std::uint32_t crc) {
  auto length = bytes_of(tensor, tile);
  if (!length)
    return fail(ErrorKind::kUsage, "a tile of it cannot be",
                Place{.file = {}, .tensor = tensor.fqn});
  AroundHole sink;
  PayloadWriter payload{[&](ByteSink& out) -> Result<std::uint32_t> {
                          SHW_CHECK(out.skip(*length));
                          return crc;
                        },
                        *length};
  SHW_TRY(std::uint64_t whole, write_torch_item(sink, tensor.dtype, tile.box.sizes, payload));
  static_cast<void>(whole);  // what the sink counted
  return sink;
}

// "__<rank>_<n>.distcp": the first n that no file of this rank has.
std::string next_file(const Checkpoint* source, std::uint32_t rank) {
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

Result<LaidOut> lay_out_dcp(const Outputs& outputs) {
  const Checkpoint* source = source_in_form(outputs, kDcpWriter);
  LaidOut out;
  std::map<std::uint32_t, std::uint32_t> file_of;  // by writer
  for (std::uint32_t t = 0; t < outputs.tensors.size(); ++t) {
    const OutputTensor& tensor = outputs.tensors[t];
    for (std::uint32_t i = 0; i < tensor.tiles.size(); ++i) {
      const OutputTile& tile = tensor.tiles[i];
      if (tile.kept) continue;
      SHW_TRY(AroundHole archive, archive_of(tensor, tile, 0));
      auto [found, added] =
          file_of.try_emplace(tile.writer, static_cast<std::uint32_t>(out.files.size()));
      if (added) out.files.push_back({next_file(source, tile.writer), 0});
      std::uint64_t& end = out.files[found->second].size;
      auto next = checked_add(end, archive.position());
      if (!next)
        return fail(ErrorKind::kUnsupported, "would be too large",
                    Place{.file = {}, .tensor = tensor.fqn});
      out.made.push_back({t, i, found->second, end + archive.before.size(), *bytes_of(tensor, tile),
                          end, archive.position()});
      end = *next;
    }
  }
  if (source == nullptr || source->directory() == nullptr) return out;
  for (const FileRow& file : source->files()) {
    if (is_dcp_metadata(file.path)) out.replaced.insert(file.path);
  }
  return out;
}

Result<std::vector<OutputBytes>> seal_archives(const Outputs& outputs, const LaidOut& laid_out,
                                               std::uint32_t file,
                                               std::span<const std::uint32_t> checksums) {
  if (checksums.size() != laid_out.made.size())
    return fail(ErrorKind::kUsage, "every tile needs its checksum");
  std::vector<OutputBytes> around;
  for (std::size_t i = 0; i < laid_out.made.size(); ++i) {
    const MadeTile& made = laid_out.made[i];
    if (made.file != file) continue;
    const OutputTensor& tensor = outputs.tensors[made.tensor];
    SHW_TRY(AroundHole archive, archive_of(tensor, tensor.tiles[made.tile], checksums[i]));
    around.push_back({file, made.item_offset, std::move(archive.before)});
    around.push_back({file, made.offset + made.length, std::move(archive.after)});
  }
  return around;
}

Result<DcpItem> kept_item(const Outputs& outputs, const std::optional<ItemPlace>& place,
                          std::string_view fqn) {
  auto offset = place ? narrow<std::uint64_t>(place->offset) : std::nullopt;
  auto length = place ? narrow<std::uint64_t>(place->length) : std::nullopt;
  const Checkpoint* source = source_in_form(outputs, kDcpWriter);
  if (!offset || !length || source == nullptr) {
    return fail(ErrorKind::kUnsupported,
                "has a tile without a usable storage record, which cannot be written again",
                Place{.file = {}, .tensor = std::string(fqn)});
  }
  return DcpItem{source->file(place->file).path, *offset, *length};
}

Result<DcpItem> item_of_tile(const Outputs& outputs, const OutputTensor& tensor,
                             const OutputTile& tile) {
  SHW_TRY(DcpItem item, kept_item(outputs, kept_place(outputs, tile), tensor.fqn));
  auto transforms = outputs.source->transforms(*tile.kept);
  item.transforms.assign(transforms.begin(), transforms.end());
  return item;
}

Status seal_dcp(Outputs outputs, const LaidOut& laid_out, const CreateFile& create) {
  PickledForm form;
  const Checkpoint* source = source_in_form(outputs, kDcpWriter);
  if (source != nullptr && source->directory() != nullptr) {
    SHW_TRY(form, read_pickled_form(*source->directory()));
  }
  SHW_TRY(DcpMetadata metadata, dcp_metadata_of(std::move(outputs), laid_out));
  SHW_TRY(auto sink, create(std::string(kDcpMetadataName)));
  SHW_CHECK(write_dcp_metadata_as(form, metadata, *sink));
  return sink->finish();
}

}  // namespace

Result<DcpMetadata> dcp_metadata_of(Outputs outputs, const LaidOut& laid_out) {
  DcpMetadata metadata;
  metadata.checkpoint_id = std::move(outputs.checkpoint_id);
  metadata.save_id = std::move(outputs.save_id);
  metadata.reordered = std::move(outputs.reordered);
  metadata.plain_attributes = std::move(outputs.attributes);
  std::string filled = outputs.filled.empty() ? std::string() : outputs.filled_text(outputs.filled);
  if (!filled.empty())
    metadata.plain_attributes.emplace_back(kFilledAttribute, pickled_text(filled));
  metadata.tensors.reserve(outputs.tensors.size());
  auto made = laid_out.made.begin();
  for (OutputTensor& tensor : outputs.tensors) {
    DcpTensor out{tensor.fqn, tensor.dtype,          tensor.requires_grad, std::move(tensor.shape),
                  {},         std::move(tensor.path)};
    out.chunks.reserve(tensor.tiles.size());
    for (OutputTile& tile : tensor.tiles) {
      DcpItem item;
      if (tile.kept) {
        SHW_TRY(item, item_of_tile(outputs, tensor, tile));
      } else {
        if (made == laid_out.made.end())
          return fail(ErrorKind::kUsage, "a new tile was not made",
                      Place{.file = {}, .tensor = tensor.fqn});
        item = {laid_out.files[made->file].path, made->item_offset, made->item_length};
        ++made;
      }
      out.chunks.push_back(
          {std::move(tile.box.offsets), std::move(tile.box.sizes), std::move(item)});
    }
    std::vector<OutputTile>().swap(tensor.tiles);  // of millions there is no room for both
    metadata.tensors.push_back(std::move(out));
  }
  for (OutputObject& object : outputs.objects) {
    SHW_TRY(DcpItem item, kept_item(outputs, object.place, object.fqn));
    item.transforms = std::move(object.transforms);
    metadata.objects.push_back({std::move(object.fqn), std::move(item), std::move(object.path)});
  }
  return metadata;
}

constexpr FormatWriter kDcpWriter{lay_out_dcp, seal_archives, seal_dcp};

}  // namespace shw
