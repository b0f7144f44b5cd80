#include "core/verbs/browse.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "core/temporary_folder.h"

using namespace shw;
using namespace shw::verbs;

namespace {

const std::string kData = std::string(SHW_TEST_DATA) + "/torch-2.14/";

FolderListing listed(const std::string& folder) {
  FolderListing listing = list_folder(folder);
  for (int i = 0; i < 1000 && !listing.is_complete(); ++i) {
    auto more = inspect_entries(std::move(listing), nullptr);
    REQUIRE(more.has_value());
    listing = std::move(*more);
  }
  return listing;
}

const ListedPlace& named(const FolderListing& listing, const std::string& name) {
  for (const ListedPlace& place : listing.places) {
    if (place.name == name) return place;
  }
  FAIL(name);
  return listing.places.front();
}

}  // namespace

TEST_CASE("a folder lists what each of its places is, steps in the order of their numbers") {
  TemporaryFolder folder;
  for (const char* step : {"step_10000", "step_9000", "step_200"})
    std::filesystem::copy(kData + "healthy_fsdp/ckpt", folder / step);
  std::filesystem::create_directories(folder / "runs/a");
  std::filesystem::copy(kData + "healthy_moe_ep/ckpt", folder / "runs/a/ckpt");
  std::filesystem::create_directories(folder / "empty");
  std::filesystem::create_directories(folder / ".hidden");
  std::filesystem::copy(kData + "healthy_fsdp/truth.safetensors", folder / "one.safetensors");
  put(folder / "notes.txt", "x");
  auto listing = listed(folder.path() + "/");
  REQUIRE_FALSE(listing.error.has_value());
  REQUIRE(listing.places.size() == 6);
  std::vector<std::string> names;
  for (const ListedPlace& place : listing.places) names.push_back(place.name);
  CHECK(names == std::vector<std::string>{"empty", "one.safetensors", "runs", "step_200",
                                          "step_9000", "step_10000"});
  CHECK(named(listing, "step_200").kind == PlaceKind::kCheckpoint);
  CHECK(named(listing, "step_200").what == "DCP");
  CHECK(named(listing, "step_200").tensors.value_or(0) > 0);
  CHECK(named(listing, "runs").what == "1 checkpoint inside");
  CHECK(named(listing, "empty").what.empty());
  CHECK(named(listing, "one.safetensors").kind == PlaceKind::kFile);
  CHECK(listing.other_files == 2);
}

TEST_CASE("browse: a folder without places is complete once it was examined itself") {
  TemporaryFolder folder;
  auto listing = list_folder(folder.path());
  REQUIRE(listing.places.empty());
  CHECK_FALSE(listing.is_complete());
  auto closer = inspect_entries(listing, nullptr);
  REQUIRE(closer.has_value());
  CHECK(closer->here.looked);
  CHECK(closer->is_complete());
}

TEST_CASE("a checkpoint knows what it is itself, and a folder that is not there says so") {
  auto listing = listed(kData + "healthy_hf_sharded/ckpt");
  CHECK(listing.here.is_openable());
  CHECK(listing.here.tensors.value_or(0) > 0);
  auto missing = list_folder("/no/such/folder/");
  CHECK(missing.error.has_value());
  CHECK(missing.is_complete());
}

TEST_CASE("a long list is read in parts, and stops when it is no longer wanted") {
  TemporaryFolder folder;
  for (int i = 0; i < 50; ++i) std::filesystem::create_directories(folder / std::to_string(i));
  auto listing = list_folder(folder.path());
  CHECK(listing.places.size() == 50);
  CHECK(listing.places[10].name == "10");
  auto part = inspect_entries(listing, nullptr);
  REQUIRE(part.has_value());
  CHECK(part->looked < 50);
  CHECK_FALSE(part->is_complete());
  Progress progress;
  progress.cancel();
  auto stopped = inspect_entries(listing, &progress);
  REQUIRE_FALSE(stopped.has_value());
  CHECK(stopped.error().kind == ErrorKind::kCancelled);
}

TEST_CASE("the home folder is written as a tilde") {
  CHECK(expanded("~", "/home/me") == "/home/me");
  CHECK(expanded("~/runs/", "/home/me") == "/home/me/runs");
  CHECK(expanded("~other", "/home/me") == "~other");
  CHECK(expanded("", "/home/me") == ".");
  CHECK(expanded("/", "/home/me") == "/");
}
