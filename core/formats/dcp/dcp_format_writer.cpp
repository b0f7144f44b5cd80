// A DCP checkpoint laid out: one file a writer, an archive a tile, one after the other. An archive
// is made around a hole of the payload's length; only what follows the hole knows the CRC.
#include "core/formats/dcp/dcp_format_writer.h"

#include <map>
#include <utility>

#include "core/formats/dcp/dcp_formats.h"
#include "core/formats/dcp/dcp_write.h"

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
  Status write_at(std::uint64_t, BytesView) override {
    return fail(ErrorKind::kUsage, "an archive is written in order");
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

// Every tile with its place in the file: the archive's begin, and its length.
template <class Visit>
Status each_archive(const Outputs& outputs, std::span<const std::uint32_t> checksums,
                    LaidOut& laid_out, Visit visit) {
  std::map<std::uint32_t, std::uint32_t> file_of;
  std::size_t i = 0;
  for (const OutputTensor& tensor : outputs.tensors) {
    for (const OutputTile& tile : tensor.tiles) {
      SHW_TRY(AroundHole archive, archive_of(tensor, tile, checksums.empty() ? 0 : checksums[i++]));
      auto [found, added] =
          file_of.try_emplace(tile.writer, static_cast<std::uint32_t>(laid_out.files.size()));
      if (added)
        laid_out.files.push_back({kDcpFormat.traits.file_of_rank(tile.writer), std::uint64_t{0}});
      LaidOut::File& file = laid_out.files[found->second];
      std::uint64_t begin = std::exchange(file.size, file.size + archive.position());
      visit(tensor, tile, found->second, begin, archive);
    }
  }
  return {};
}

Result<LaidOut> lay_out(const Outputs& outputs) {
  LaidOut out;
  SHW_CHECK(each_archive(
      outputs, {}, out,
      [&](const OutputTensor& tensor, const OutputTile& tile, std::uint32_t file,
          std::uint64_t begin, AroundHole& archive) {
        out.tiles.push_back({file, begin + archive.before.size(), *bytes_of(tensor, tile)});
        out.before.push_back({file, begin, std::move(archive.before)});
      }));
  return out;
}

Result<Seal> seal(const Outputs& outputs, const LaidOut& laid_out,
                  std::span<const std::uint32_t> checksums) {
  if (checksums.size() != laid_out.tiles.size())
    return fail(ErrorKind::kUsage, "every tile needs its checksum");
  Seal out;
  DcpMetadata metadata;
  metadata.checkpoint_id = outputs.checkpoint_id;
  metadata.save_id = outputs.save_id;
  for (const OutputTensor& tensor : outputs.tensors)
    metadata.tensors.push_back(
        {tensor.fqn, tensor.dtype, tensor.requires_grad, tensor.shape, {}, tensor.path});
  const OutputTensor* first = outputs.tensors.data();
  LaidOut again;
  if (!checksums.empty())
    SHW_CHECK(each_archive(
        outputs, checksums, again,
        [&](const OutputTensor& tensor, const OutputTile& tile, std::uint32_t file,
            std::uint64_t begin, AroundHole& archive) {
          std::uint64_t length = archive.position();
          metadata.tensors[static_cast<std::size_t>(&tensor - first)].chunks.push_back(
              {tile.box.offsets, tile.box.sizes, {laid_out.files[file].path, begin, length}});
          out.after.push_back(
              {file, begin + length - archive.after.size(), std::move(archive.after)});
        }));
  AroundHole index;
  SHW_CHECK(write_dcp_metadata(metadata, index));
  out.metadata.emplace_back(std::string(kDcpMetadataName), std::move(index.before));
  return out;
}

}  // namespace

constexpr FormatWriter kDcpWriter{lay_out, seal};

}  // namespace shw
