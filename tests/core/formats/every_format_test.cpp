// A checkpoint of every format with any byte wrong and any file cut: the answer is a checkpoint, or
// an error that says what is wrong and in which file.
#include <doctest/doctest.h>

#include <random>
#include <set>

#include "core/format_folders.h"
#include "core/formats/items/item_check.h"
#include "core/formats/items/items.h"
#include "core/formats/open.h"

using namespace shw;
using namespace shw::test;

namespace {

FolderFiles sound_files(const FormatFolder& folder) {
  auto files = files_of_format(SHW_TEST_DATA, folder);
  REQUIRE_MESSAGE(files.has_value(), folder.path);
  REQUIRE_FALSE(files->empty());
  return std::move(*files);
}

void must_be_said(const Error& error) {
  CHECK_FALSE(error.message.empty());
  CHECK_FALSE(error.place.file.empty());
}

// Opens, reads and checks all of it.
void must_be_answered(const FolderFiles& files) {
  constexpr std::uint64_t kMaxBytes = 1 << 20;
  auto opened = open_checkpoint(memory_directory("ckpt", files));
  if (!opened) return must_be_said(opened.error());
  for (std::uint32_t t = 0; t < (*opened)->tensor_count(); ++t)
    if (auto read = read_tensor(**opened, TensorId{t}, kMaxBytes); !read)
      CHECK_FALSE(read.error().message.empty());
  for (std::uint32_t c = 0; c < (*opened)->chunk_count(); ++c)
    (void)check_item_data(**opened, ChunkId{c}, nullptr);
}

}  // namespace

TEST_CASE("every format: the table has no format without a checkpoint in tests/data") {
  std::set<std::string_view> there;
  for (const FormatFolder& folder : kFormatFolders) {
    auto opened = open_checkpoint(memory_directory("ckpt", sound_files(folder)));
    REQUIRE_MESSAGE(opened.has_value(), folder.path);
    CAPTURE(folder.path);
    CHECK((*opened)->format().name == folder.format);
    CHECK((*opened)->tensor_count() > 0);
    there.insert(folder.format);
  }
  for (const FormatRow& row : formats()) {
    // Archives open as what is in them.
    if (row.format->name == "nemo" || row.format->name == "torch-zip") continue;
    CAPTURE(row.format->name);
    CHECK(there.contains(row.format->name));
  }
}

TEST_CASE("every format: a folder on a disk opens as it does in memory, however deep it is") {
  for (const FormatFolder& folder : kFormatFolders) {
    auto opened = open_checkpoint(std::string(SHW_TEST_DATA) + "/" + std::string(folder.path));
    auto in_memory = open_checkpoint(memory_directory("ckpt", sound_files(folder)));
    CAPTURE(folder.path);
    REQUIRE(opened.has_value());
    REQUIRE(in_memory.has_value());
    CHECK((*opened)->tensor_count() == (*in_memory)->tensor_count());
    CHECK((*opened)->chunk_count() == (*in_memory)->chunk_count());
  }
}

TEST_CASE("every format: a wrong byte or a cut in any file is answered") {
  constexpr int kChanges = 40;
  std::mt19937 random(37);
  for (const FormatFolder& folder : kFormatFolders) {
    const FolderFiles sound = sound_files(folder);
    CAPTURE(folder.path);
    for (int change = 0; change < kChanges; ++change) {
      FolderFiles files = sound;
      Bytes& bytes = files[random() % files.size()].second;
      if (bytes.empty()) continue;
      // Metadata is at both ends of a file.
      const std::size_t reach = std::min<std::size_t>(bytes.size(), 512);
      const std::size_t within = random() % reach;
      const std::size_t at = change % 2 == 0 ? within : bytes.size() - 1 - within;
      CAPTURE(at);
      if (change % 5 == 4)
        bytes.resize(at);
      else
        bytes[at] ^= static_cast<std::byte>(1 + random() % 255);
      must_be_answered(files);
    }
  }
}
