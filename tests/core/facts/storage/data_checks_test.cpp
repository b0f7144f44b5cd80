#include "core/facts/storage/data_checks.h"

#include <doctest/doctest.h>

#include <atomic>

#include "core/base/parallel.h"
#include "core/facts/values/many_values.h"
#include "core/facts/values/tensor_statistics.h"
#include "core/formats/items/item_check.h"
#include "core/formats/open.h"
#include "core/repair/make_checkpoint.h"
#include "core/temporary_folder.h"

using namespace shw;

namespace {

// Counts the opened files and the reads of a folder.
class CountedFolder final : public Directory {
 public:
  explicit CountedFolder(std::shared_ptr<const Directory> inner) : inner_(std::move(inner)) {}
  const std::string& name() const override { return inner_->name(); }
  Result<std::vector<Entry>> list(std::size_t limit) const override { return inner_->list(limit); }
  Entry stat(const std::string& path) const override { return inner_->stat(path); }
  Result<std::shared_ptr<const ByteSource>> open(const std::string& path) const override {
    ++opened;
    auto counting = faulty_directory(
        inner_, [this](const std::string&, std::uint64_t, std::size_t) -> std::optional<Error> {
          ++reads;
          return std::nullopt;
        });
    return counting->open(path);
  }
  mutable std::atomic<std::size_t> opened{0}, reads{0};

 private:
  std::shared_ptr<const Directory> inner_;
};

// 600 tensors in three tiles by three ranks, saved rank by rank.
struct ManyTiles {
  TemporaryFolder folder;
  std::shared_ptr<CountedFolder> counted;
  std::shared_ptr<const Checkpoint> checkpoint;

  ManyTiles() {
    std::vector<MadeTensor> tensors;
    for (std::int64_t t = 0; t < 600; ++t) {
      MadeTensor tensor{"t" + std::to_string(t), {3, 2}, {}};
      for (std::int64_t i = 0; i < 3; ++i)
        tensor.chunks.push_back({{{i, 0}, {1, 2}}, {1, 2}, {t, i}, static_cast<std::uint32_t>(i)});
      tensors.push_back(std::move(tensor));
    }
    write_checkpoint(folder / "ckpt", tensors);
    counted = std::make_shared<CountedFolder>(open_directory(folder / "ckpt").value());
    checkpoint = open_checkpoint(counted).value();
  }
  void begin() { counted->opened = counted->reads = 0; }
  // About fifty of 1,800 items of 1.3 KB are in one read; a thread starts a new read where its next
  // run begins.
  void check_counts() const {
    CHECK(counted->opened.load() <= 3 * worker_count());
    CHECK(counted->reads.load() <= 1800 / 6 + 16 * worker_count());  // eight runs for each
  }
};

}  // namespace

TEST_CASE("every byte of many small items is read without opening a file for each") {
  ManyTiles many;
  auto headers = read_item_headers(*many.checkpoint, nullptr);
  REQUIRE(headers.has_value());
  many.begin();
  CountedChunks counted(*many.checkpoint);
  auto data = read_all_data(*many.checkpoint, *headers, nullptr, nullptr, &counted);
  REQUIRE(data.has_value());
  many.check_counts();
  REQUIRE(data->chunks.size() == 1800);
  for (std::uint32_t c = 0; c < 1800; ++c) {
    const ChunkId chunk{c};
    const ItemHeader header = (*headers)[c].value();
    auto alone = check_item_data(*many.checkpoint, chunk, nullptr, &header);
    REQUIRE(alone.has_value());
    REQUIRE(data->chunks[c].has_value());
    CHECK(data->chunks[c]->actual == alone->actual);
    CHECK(data->chunks[c]->crc == DataCheck::Crc::kMatches);
    CHECK(data->chunks[c]->floats->zero == alone->floats->zero);
    CHECK(counted.has(chunk));
  }
}

TEST_CASE("the numbers of many small items are counted without opening a file for each") {
  ManyTiles many;
  std::vector<TensorId> tensors;
  for (TensorId tensor : many.checkpoint->tensors()) tensors.push_back(tensor);
  many.begin();
  auto told = statistics_of(*many.checkpoint, tensors, nullptr);
  REQUIRE(told.has_value());
  many.check_counts();
  REQUIRE(told->size() == 600);
  for (std::size_t i = 0; i < told->size(); ++i) {
    const TensorStatistics& one = (*told)[i];
    CHECK(one.is_whole());
    CHECK(one.fqn == many.checkpoint->fqn(tensors[i]));
    CHECK(one.statistics.elements == 6);
  }
}

TEST_CASE("whether many small tensors hold more than a few values opens no file for each") {
  ManyTiles many;
  std::vector<TensorId> tensors;
  for (TensorId tensor : many.checkpoint->tensors()) tensors.push_back(tensor);
  const CheckInput input{*many.checkpoint, nullptr, nullptr, {}, {}, {}, {}};
  for (std::size_t few : {1, 3}) {
    many.begin();
    const std::vector<bool> found = have_more_values_than(input, tensors, few);
    // Files that the first tiles do not decide are read once more, with all others.
    CHECK(many.counted->opened.load() <= 6 * worker_count());
    CHECK(many.counted->reads.load() <= 2 * (1800 / 6 + 16 * worker_count()));
    REQUIRE(found.size() == 600);
    // Tile i of tensor t has the values t and i.
    for (std::size_t t = 0; t < found.size(); ++t) CHECK(found[t] == (few == 1 || t > 2));
  }
}
