// Certifying large files next to the items shows progress and can be cancelled.
#include <doctest/doctest.h>

#include <filesystem>
#include <set>

#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/repair/proof/agreement.h"
#include "core/repair/proof/digests.h"
#include "core/repair/proof/item_hashes.h"
#include "core/temporary_folder.h"

using namespace shw;

namespace {

struct WithFilesBeside {
  TemporaryFolder folder;
  std::shared_ptr<const Checkpoint> checkpoint;
  ItemHashes hashes;

  WithFilesBeside() {
    std::filesystem::copy(std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_fsdp/ckpt",
                          folder / "step");
    for (int i = 0; i < 3; ++i)
      put(folder / "step/beside" + std::to_string(i), std::string(5'000'000, 'x'));
    auto opened = open_checkpoint(folder / "step");
    REQUIRE(opened.has_value());
    checkpoint = *opened;
    auto hashed = hash_all_items(*checkpoint, nullptr);
    REQUIRE(hashed.has_value());
    hashes = *hashed;
  }
};

}  // namespace

TEST_CASE("files are certified in the order of their names and every byte of them is counted") {
  WithFilesBeside made;
  Progress progress;
  progress.begin(Phase::kVerifying, 100, true);
  auto files = certify_files(*made.checkpoint, made.hashes, &progress);
  REQUIRE(files.has_value());
  std::set<std::string> rests;
  std::size_t beside = 0;
  for (std::size_t i = 0; i < files->size(); ++i) {
    const FileCertificate& file = (*files)[i];
    if (i > 0) CHECK((*files)[i - 1].path < file.path);
    if (!file.path.starts_with("beside")) continue;
    ++beside;
    CHECK(file.size == 5'000'000);
    rests.insert(file.rest);
    CHECK(file.items.empty());
  }
  CHECK(beside == 3);
  CHECK(rests.size() == 1);  // they hold the same
  CHECK(progress.done + 100 == progress.total);
  CHECK(progress.done >= 15'000'000);
}

TEST_CASE("certifying files stops when it is told to") {
  WithFilesBeside made;
  Progress progress;
  progress.cancel();
  auto files = certify_files(*made.checkpoint, made.hashes, &progress);
  REQUIRE_FALSE(files.has_value());
  CHECK(files.error().kind == ErrorKind::kCancelled);
}
