#include "core/formats/toy_format.h"

#include <algorithm>
#include <sstream>

#include "core/base/words.h"
#include "core/formats/common/codecs.h"
#include "core/formats/common/item_reader.h"
#include "core/model/builder.h"

namespace shw::test {
namespace {

constexpr std::string_view kIndex = "toy.index";
constexpr std::string_view kFirstLine = "toy-index 1";

Bytes flipped(Bytes bytes) {
  for (std::byte& byte : bytes) byte = ~byte;
  return bytes;
}

// The item unchanged, but marked as compressed, since its bytes have to be decoded.
Result<OpenItem> open_flipped(const Checkpoint& checkpoint, ChunkId chunk, ItemRange range,
                              ItemPart part) {
  SHW_TRY(OpenItem item, kRawCodec.reader->open(checkpoint, chunk, range, part));
  item.header.compressed = true;
  item.stored = [range](std::uint64_t first, std::uint64_t last) -> Result<Bytes> {
    SHW_TRY(Bytes bytes, read_bytes(*range.source, range.offset + first, last - first));
    return flipped(std::move(bytes));
  };
  return item;
}

constexpr ItemReader kFlippedReader{open_flipped, nullptr};
constexpr Codec kFlippedCodec{"flipped", &kFlippedReader};

constexpr Format kToyFormat = {
    .name = "toy",
    .title = "Toy",
    .codec = &kRawCodec,
    .traits = {.has_index = true, .one_index_file = true, .index_file = kIndex},
};

Extents extents_of(std::istream& line) {
  std::string text;
  line >> text;
  Extents out;
  std::istringstream numbers(text);
  for (std::string one; std::getline(numbers, one, ',');) out.push_back(std::stoll(one));
  return out;
}

struct ToyReader {
  CheckpointBuilder builder{};
  ChunkId last{};

  ItemPlace place_of(std::istream& line) {
    std::string file;
    ItemPlace place;
    line >> file >> place.offset >> place.length;
    place.file = builder.file(file);
    return place;
  }
  ChunkId chunk_of(std::istream& line, std::uint32_t& rank) {
    Extents offsets = extents_of(line), sizes = extents_of(line);
    line >> rank;
    return last = builder.add_chunk(offsets, sizes, {});
  }

  void read(std::istream& line, const std::string& word) {
    std::uint32_t rank = 0;
    if (word == "tensor") {
      std::string name, dtype;
      line >> name >> dtype;
      builder.add_tensor(name, dtype_from_torch(dtype).value_or(Dtype::kUnknown), extents_of(line));
    } else if (word == "tile") {
      ChunkId chunk = chunk_of(line, rank);
      ItemPlace place = place_of(line);
      std::string codec;
      line >> codec;
      builder.set_writer(chunk, rank);
      if (codec == "flipped") {
        builder.set_view(chunk, builder.add_storage(place, &kFlippedCodec));
      } else {
        builder.set_item(chunk, place);
      }
    } else if (word == "view") {
      ChunkId chunk = chunk_of(line, rank);
      StorageId storage = builder.add_storage(place_of(line));
      std::int64_t element = 0;
      line >> element;
      builder.set_view(chunk, storage, element, extents_of(line));
      builder.set_writer(chunk, rank);
    } else if (word == "copy") {
      line >> rank;
      builder.add_replica({last, builder.add_storage(place_of(line)), rank});
    }
  }
};

Result<bool> is_toy(const DirectoryContents& look) {
  SHW_TRY(Bytes bytes, look.first_bytes(std::string(kIndex), kFirstLine.size()));
  return std::ranges::equal(bytes, std::as_bytes(std::span(kFirstLine)));
}

OpenedCheckpoint open_toy(std::shared_ptr<const Directory> directory, Progress*) {
  SHW_TRY(auto source, directory->open(std::string(kIndex)));
  SHW_TRY(Bytes bytes, read_bytes(*source, 0, source->size()));
  std::istringstream lines(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  ToyReader reader;
  reader.builder.set_format(kToyFormat);
  reader.builder.set_directory(std::move(directory));
  for (std::string text, word; std::getline(lines, text);) {
    std::istringstream line(text);
    line >> word;
    reader.read(line, word);
  }
  return reader.builder.finish();
}

FileRole named_toy(std::string_view file) {
  return file == kIndex ? FileRole::kCheckpoint : FileRole::kNothing;
}

// 0, 1, 2, ... as float32.
Bytes counted_floats(std::size_t count) {
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i));
  auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

constexpr FormatRow kToyRow = {
    .format = &kToyFormat,
    .sign = kIndex,
    .recognises = is_toy,
    .open = open_toy,
    .named = named_toy,
};

std::vector<FormatRow> with_toy() {
  std::vector<FormatRow> rows(formats().begin(), formats().end());
  rows.push_back(kToyRow);
  return rows;
}

std::vector<std::pair<std::string, Bytes>> toy_files() {
  std::string index = std::string(kFirstLine) +
                      "\n"
                      "tensor w float32 4,6\n"
                      "tile 0,0 2,6 0 a.bin 0 48 plain\n"
                      "tile 2,0 2,6 1 b.bin 0 48 flipped\n"
                      "copy 2 c.bin 0 48\n"
                      "tensor t float32 3,2\n"
                      "view 0,0 3,2 0 a.bin 0 48 1 1,6\n";
  auto text = std::as_bytes(std::span(index));
  Bytes all = counted_floats(24);
  Bytes first(all.begin(), all.begin() + 48), second(all.begin() + 48, all.end());
  return {{std::string(kIndex), {text.begin(), text.end()}},
          {"a.bin", first},
          {"b.bin", flipped(second)},
          {"c.bin", second}};
}

}  // namespace shw::test
