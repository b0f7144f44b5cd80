#include "core/verbs/values/bytes_window.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "core/fixtures.h"
#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/temporary_folder.h"
#include "core/tensor/element_text.h"

using namespace shw;
using namespace shw::verbs;

namespace {

std::string healthy(const char* name) {
  return std::string(SHW_TEST_DATA) + "/torch-2.14/" + name + "/ckpt";
}

bool names(const std::vector<BytePart>& parts, std::string_view word) {
  return std::any_of(parts.begin(), parts.end(), [&](const BytePart& part) {
    return part.name.find(word) != std::string::npos;
  });
}

void check_side_by_side(const std::vector<BytePart>& parts) {
  for (std::size_t p = 0; p < parts.size(); ++p) {
    CHECK(parts[p].first < parts[p].last);
    if (p > 0) CHECK(parts[p].first == parts[p - 1].last);
  }
}

}  // namespace

TEST_CASE("every byte of every item that torch wrote has a part, and the payload is where it is") {
  for (const std::string& folder : test::fixture_cases("healthy_")) {
    CAPTURE(folder);
    auto opened = open_checkpoint(folder + "/ckpt");
    REQUIRE(opened.has_value());
    const Checkpoint& checkpoint = **opened;
    for (std::uint32_t c = 0; c < checkpoint.chunk_count(); c += 7) {
      auto window = bytes_of(checkpoint, ChunkId{c});
      REQUIRE_MESSAGE(window.has_value(), window.error().message);
      CHECK(window->wrong.empty());
      REQUIRE(window->record.has_value());
      CHECK(window->record->chunk == ChunkId{c});
      check_side_by_side(window->parts);
      CHECK(window->bytes.size() <= kMaxWindow);
      if (window->values_first == window->values_last) {
        CHECK_FALSE(window->no_values.empty());
        continue;
      }
      auto header = read_item_header(checkpoint, ChunkId{c});
      REQUIRE(header.has_value());
      auto payload =
          std::find_if(window->all.begin(), window->all.end(), [&](const BytePart& part) {
            return part.kind == PartKind::kPayload && part.first == header->payload_offset &&
                   part.last == part.first + header->payload_length;
          });
      bool stored = header->payload_length > 0;
      CHECK((payload != window->all.end()) == stored);
    }
  }
}

TEST_CASE("typed values next to the bytes are those of the tensor, with their index") {
  auto opened = open_checkpoint(healthy("healthy_fsdp"));
  REQUIRE(opened.has_value());
  const Checkpoint& checkpoint = **opened;
  for (std::uint32_t c = 0; c < std::min(40u, checkpoint.chunk_count()); ++c) {
    ChunkId chunk{c};
    auto begin = bytes_of(checkpoint, chunk);
    REQUIRE(begin.has_value());
    if (begin->values_first == begin->values_last || begin->sizes.empty()) continue;
    auto window = bytes_at(checkpoint, begin->path, begin->values_first, chunk);
    auto whole = read_chunk(checkpoint, chunk);
    REQUIRE(window.has_value());
    REQUIRE(whole.has_value());
    Dtype dtype = checkpoint.dtype(checkpoint.tensor_of(chunk));
    CHECK(value_at(*window, window->values_first) == element_text(dtype, *whole, 0));
    CHECK(index_at(*window, window->values_first) == to_text(checkpoint.offsets(chunk)));
    CHECK(value_at(*window, window->values_first + 1).empty() == (size_of(dtype) > 1));
  }
}

TEST_CASE("records are walked by next and previous, each once") {
  auto opened = open_checkpoint(healthy("healthy_fsdp"));
  REQUIRE(opened.has_value());
  const Checkpoint& checkpoint = **opened;
  std::string path = checkpoint.file(FileId{0}).path;
  std::size_t recorded = 0, met = 1;
  for (std::uint32_t c = 0; c < checkpoint.chunk_count(); ++c)
    recorded += checkpoint.item(ChunkId{c})->file == FileId{0};
  for (const NonTensorEntry& object : checkpoint.objects())
    recorded += object.item && object.item->file == FileId{0};
  auto window = bytes_at(checkpoint, path, 0, std::nullopt);
  REQUIRE(window.has_value());
  CHECK_FALSE(window->previous.has_value());
  while (window->next) {
    std::uint64_t from = window->at;
    window = bytes_at(checkpoint, path, *window->next, std::nullopt);
    REQUIRE(window.has_value());
    CHECK(window->previous == from);
    ++met;
  }
  CHECK(met == recorded);
}

TEST_CASE("of a file that was cut off the bytes are shown, and what is missing is said") {
  TemporaryFolder folder;
  std::filesystem::copy(healthy("healthy_fsdp"), folder / "ckpt");
  auto whole = open_checkpoint(healthy("healthy_fsdp"));
  REQUIRE(whole.has_value());
  ChunkId chunk{0};
  ItemPlace place = *(*whole)->item(chunk);
  std::string file = (*whole)->file(place.file).path;
  auto header = read_item_header(**whole, chunk);
  REQUIRE(header.has_value());
  auto cut = header->payload_offset + 8;
  std::filesystem::resize_file(folder / ("ckpt/" + file), cut);
  auto damaged = open_checkpoint(folder / "ckpt");
  REQUIRE(damaged.has_value());
  auto window = bytes_of(**damaged, chunk);
  REQUIRE(window.has_value());
  REQUIRE_FALSE(window->wrong.empty());
  CHECK(window->wrong[0].find("truncated: the file ends at byte") == 0);
  check_side_by_side(window->parts);
  CHECK(names(window->all, "local header of"));
  CHECK(window->values_first == header->payload_offset);
  CHECK(window->values_last == cut);

  // For a record whose bytes are all missing, shows the end of the file.
  ChunkId gone{0};
  for (std::uint32_t c = 0; c < (*damaged)->chunk_count(); ++c) {
    auto item = (*damaged)->item(ChunkId{c});
    if (item->file == place.file && static_cast<std::uint64_t>(item->offset) > cut)
      gone = ChunkId{c};
  }
  REQUIRE(gone != chunk);
  auto last = bytes_of(**damaged, gone);
  REQUIRE(last.has_value());
  CHECK(last->at == cut - 1);
  CHECK(last->wrong[0].find("all of it is missing") != std::string::npos);
  std::filesystem::remove(folder / ("ckpt/" + file));
  CHECK_FALSE(bytes_of(**damaged, chunk).has_value());
}

TEST_CASE("bytes of damaged archives never upset what tells their parts") {
  TemporaryFolder folder;
  std::filesystem::copy(healthy("healthy_fsdp"), folder / "ckpt");
  auto opened = open_checkpoint(folder / "ckpt");
  REQUIRE(opened.has_value());
  ItemPlace place = *(*opened)->item(ChunkId{0});
  std::string file = folder / ("ckpt/" + (*opened)->file(place.file).path);
  std::string good = contents(file);
  std::size_t wrong = 0;
  auto begin = static_cast<std::size_t>(place.offset);
  for (std::size_t at = begin; at < begin + static_cast<std::size_t>(place.length); at += 3) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0xFF);
    put(file, bad);
    auto window = bytes_of(**opened, ChunkId{0});
    REQUIRE(window.has_value());
    check_side_by_side(window->all);
    wrong += !window->wrong.empty();
  }
  CHECK(wrong > 20);
}

TEST_CASE("a safetensors file shows its header, and a compressed item has no values") {
  auto hf = open_checkpoint(healthy("healthy_hf_sharded"));
  REQUIRE(hf.has_value());
  auto window = bytes_at(**hf, (*hf)->file(FileId{0}).path, 0, std::nullopt);
  REQUIRE(window.has_value());
  CHECK(names(window->parts, "length of the header"));
  CHECK(window->parts[0].last == 8);
  auto zstd = open_checkpoint(healthy("healthy_zstd"));
  REQUIRE(zstd.has_value());
  auto packed = bytes_of(**zstd, ChunkId{0});
  REQUIRE(packed.has_value());
  CHECK(packed->no_values.find("compressed") == 0);
  CHECK(value_at(*packed, packed->at).empty());
}

TEST_CASE("offsets are read as people write them") {
  CHECK(parse_offset("4096", 0) == 4096u);
  CHECK(parse_offset("0x1000", 0) == 4096u);
  CHECK(parse_offset("4,096", 0) == 4096u);
  CHECK(parse_offset("+0x10", 16) == 32u);
  CHECK(parse_offset("-64", 16) == 0u);
  for (const char* bad : {"", "x", "0x", "12a", "+", "99999999999999999999"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_offset(bad, 0).has_value());
  }
}

TEST_CASE("rows are copied as hexdump prints them") {
  BytesWindow window;
  window.first = 16;
  for (char c : std::string("PK\x03\x04"
                            "abc"))
    window.bytes.push_back(static_cast<std::byte>(c));
  CHECK(hex_text(window, 0, 64) ==
        "00000010  50 4b 03 04 61 62 63                              |PK..abc|\n");
}
