// Writes tiles through a format's writer into memory, in a random order.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/formats/format_writer.h"
#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/formats/zip/crc32.h"

namespace shw::test {

using WrittenFiles = std::map<std::string, Bytes>;

// Outputs with the source's tiles, all to be computed.
inline Outputs outputs_of(const Checkpoint& checkpoint) {
  Outputs out;
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t) {
    TensorId tensor{t};
    OutputTensor one{std::string(checkpoint.fqn(tensor)),
                     checkpoint.dtype(tensor),
                     checkpoint.requires_grad(tensor),
                     copy_of(checkpoint.shape(tensor)),
                     {}};
    for (ChunkId chunk : checkpoint.chunks(tensor))
      one.tiles.push_back({{copy_of(checkpoint.offsets(chunk)), copy_of(checkpoint.sizes(chunk))},
                           checkpoint.writer(chunk).value_or(0)});
    out.tensors.push_back(std::move(one));
  }
  return out;
}

inline void put_bytes(WrittenFiles& files, const LaidOut& laid_out, std::uint32_t file,
                      std::uint64_t offset, BytesView bytes) {
  REQUIRE(file < laid_out.files.size());
  Bytes& target = files[laid_out.files[file].path];
  target.resize(laid_out.files[file].size, std::byte{0xEE});
  REQUIRE(offset + bytes.size() <= target.size());
  std::copy(bytes.begin(), bytes.end(), target.begin() + static_cast<std::ptrdiff_t>(offset));
}

// Stores written bytes under a name.
class NamedSink final : public ByteSink {
 public:
  NamedSink(WrittenFiles& files, std::string path) : bytes_(files[std::move(path)]) {}
  Status write(BytesView more) override {
    bytes_.insert(bytes_.end(), more.begin(), more.end());
    return {};
  }
  Status skip(std::uint64_t) override { return fail(ErrorKind::kUsage, "no"); }
  std::uint64_t position() const override { return bytes_.size(); }
  Status finish() override { return {}; }

 private:
  Bytes& bytes_;
};

// `bytes`: of every tile. Tiles last to first: nothing may depend on the order.
inline WrittenFiles written_files(const FormatWriter& writer, const Outputs& outputs,
                                  const std::vector<Bytes>& bytes) {
  auto laid_out = writer.lay_out(outputs);
  REQUIRE_MESSAGE(laid_out.has_value(), laid_out.error().message);
  REQUIRE(laid_out->made.size() == bytes.size());
  WrittenFiles files;
  std::vector<std::uint32_t> checksums(bytes.size());
  for (std::size_t i = bytes.size(); i-- > 0;) {
    const WrittenTile& made = laid_out->made[i];
    CHECK(made.length == bytes[i].size());
    put_bytes(files, *laid_out, made.file, made.offset, bytes[i]);
    checksums[i] = crc32_of(bytes[i]);
  }
  for (const OutputBytes& part : laid_out->before)
    put_bytes(files, *laid_out, part.file, part.offset, part.bytes);
  for (std::uint32_t f = 0; writer.seal_file != nullptr && f < laid_out->files.size(); ++f) {
    auto around = writer.seal_file(outputs, *laid_out, f, checksums);
    REQUIRE_MESSAGE(around.has_value(), around.error().message);
    for (const OutputBytes& part : *around)
      put_bytes(files, *laid_out, part.file, part.offset, part.bytes);
  }
  auto sealed = writer.seal(outputs, *laid_out, [&](const std::string& path) {
    return Result<std::unique_ptr<ByteSink>>(std::make_unique<NamedSink>(files, path));
  });
  REQUIRE_MESSAGE(sealed.has_value(), sealed.error().message);
  return files;
}

inline std::shared_ptr<const Checkpoint> written(const FormatWriter& writer, const Outputs& outputs,
                                                 const std::vector<Bytes>& bytes) {
  WrittenFiles files = written_files(writer, outputs, bytes);
  std::vector<std::pair<std::string, Bytes>> all(files.begin(), files.end());
  auto opened = open_checkpoint(memory_directory("written", all));
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  return *opened;
}

inline std::vector<Bytes> bytes_in(const Checkpoint& checkpoint) {
  std::vector<Bytes> all;
  for (std::uint32_t c = 0; c < checkpoint.chunk_count(); ++c) {
    auto bytes = read_chunk(checkpoint, ChunkId{c});
    REQUIRE_MESSAGE(bytes.has_value(), bytes.error().message);
    all.push_back(std::move(*bytes));
  }
  return all;
}

inline Bytes rising_bytes(std::size_t length, int first) {
  Bytes bytes(length);
  for (std::size_t i = 0; i < length; ++i) bytes[i] = static_cast<std::byte>(first + int(i));
  return bytes;
}

inline const Format& format_named(std::string_view name) {
  auto rows = formats();
  auto row = std::find_if(rows.begin(), rows.end(),
                          [&](const FormatRow& one) { return one.format->name == name; });
  REQUIRE(row != rows.end());
  REQUIRE(row->format->writer != nullptr);
  return *row->format;
}

}  // namespace shw::test
