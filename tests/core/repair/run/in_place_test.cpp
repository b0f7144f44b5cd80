// Repairs in place: only the metadata changes, and undo restores it.
#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <optional>

#include "core/dead_process.h"
#include "core/faulty_store.h"
#include "core/repair/broken_down.h"
#include "core/repair/run/apply.h"
#include "core/temporary_folder.h"

using namespace shw;
using namespace shw::test;

TEST_CASE("in place only the metadata changes, and undo brings it back byte for byte") {
  TemporaryFolder folder;
  write_broken(folder / "ckpt");
  auto before = all_files(folder / "ckpt");
  auto checkpoint = opened(folder / "ckpt");
  Plan plan = plan_of(*checkpoint, {axis_moved()});
  ApplyOptions options;
  options.in_place = true;
  auto repaired = apply_plan(*checkpoint, plan, options);
  if (!repaired) FAIL(repaired.error().message);
  CHECK(values_of(*opened(folder / "ckpt"), "down") == kDown);
  CHECK(verdict(folder / "ckpt") == VerifyReport::Outcome::kProved);
  CHECK(contents(folder / "ckpt/.metadata.shardwright-undo") == before[folder / "ckpt/.metadata"]);
  auto twice = apply_plan(*opened(folder / "ckpt"), plan, options);
  CHECK_FALSE(twice.has_value());
  REQUIRE(undo_repair(folder / "ckpt"));
  CHECK(all_files(folder / "ckpt") == before);
  Status nothing = undo_repair(folder / "ckpt");
  REQUIRE_FALSE(nothing.has_value());
  CHECK(nothing.error().kind == ErrorKind::kUsage);
}

TEST_CASE("what was saved after a repair in place is not thrown away by undo") {
  TemporaryFolder folder;
  write_broken(folder / "ckpt");
  ApplyOptions options;
  options.in_place = true;
  auto checkpoint = opened(folder / "ckpt");
  REQUIRE(apply_plan(*checkpoint, plan_of(*checkpoint, {axis_moved()}), options));
  const std::string repaired = contents(folder / "ckpt/.metadata");
  put(folder / "ckpt/.metadata", "what a trainer saved since");
  Status undone = undo_repair(folder / "ckpt");
  REQUIRE_FALSE(undone.has_value());
  CHECK(undone.error().kind == ErrorKind::kUsage);
  CHECK(contents(folder / "ckpt/.metadata") == "what a trainer saved since");
  put(folder / "ckpt/.metadata", repaired);
  const std::string kept = folder / "ckpt/.metadata.shardwright-undo", before = contents(kept);
  put(kept, "torn");
  CHECK_FALSE(undo_repair(folder / "ckpt").has_value());
  CHECK(contents(folder / "ckpt/.metadata") == repaired);
  put(kept, before);
  CHECK(undo_repair(folder / "ckpt"));
  CHECK(contents(folder / "ckpt/.metadata") == before);
}

TEST_CASE("repair in place: a second one that found the same dead owner is refused") {
  TemporaryFolder folder;
  write_broken(folder / "ckpt");
  const std::string before = contents(folder / "ckpt/.metadata");
  auto checkpoint = opened(folder / "ckpt");
  Plan plan = plan_of(*checkpoint, {axis_moved()});
  ApplyOptions options;
  options.in_place = true;
  put(folder / "ckpt/.shardwright-owner", dead_process());
  // Both runs have seen the dead owner, and the first is about to remove it.
  std::optional<Error> second;
  bool has_tried = false;
  FaultyStore store(posix_store(), [&](const std::string& step, const std::string& path) {
    if (step == "remove" && path == ".shardwright-owner" && !has_tried) {
      has_tried = true;
      auto late = apply_plan(*checkpoint, plan, options);
      if (!late) second = late.error();
    }
    return std::optional<Error>();
  });
  auto first = apply_plan(store, *checkpoint, plan, options, nullptr);
  REQUIRE(has_tried);
  REQUIRE(second.has_value());
  CHECK(second->kind == ErrorKind::kUsage);
  REQUIRE(first.has_value());
  CHECK(contents(folder / "ckpt/.metadata.shardwright-undo") == before);
  CHECK(verdict(folder / "ckpt") == VerifyReport::Outcome::kProved);
}

TEST_CASE("repair in place: what takes the place of .metadata is for no other eyes than it was") {
  TemporaryFolder folder;
  write_broken(folder / "ckpt");
  using std::filesystem::perms;
  const perms own = perms::owner_read | perms::owner_write;
  std::filesystem::permissions(folder / "ckpt/.metadata", own);
  auto checkpoint = opened(folder / "ckpt");
  ApplyOptions options;
  options.in_place = true;
  REQUIRE(apply_plan(*checkpoint, plan_of(*checkpoint, {axis_moved()}), options));
  for (const char* name : {".metadata", ".metadata.shardwright-undo", "certificate.json"})
    CHECK(std::filesystem::status(folder / (std::string("ckpt/") + name)).permissions() == own);
}

TEST_CASE("of two processes that repair one checkpoint in place the second is refused") {
  TemporaryFolder folder;
  write_broken(folder / "ckpt");
  auto checkpoint = opened(folder / "ckpt");
  Plan plan = plan_of(*checkpoint, {axis_moved()});
  ApplyOptions options;
  options.in_place = true;
  test::LiveProcess other;
  const std::string owner = folder / "ckpt/.shardwright-owner";
  put(owner, other.text());
  put(folder / "ckpt/.metadata.shardwright-new", "what the other one writes");
  auto before = all_files(folder / "ckpt");
  for (bool undo : {false, true}) {
    Status refused;
    if (undo)
      refused = undo_repair(folder / "ckpt");
    else if (auto made = apply_plan(*checkpoint, plan, options); !made)
      refused = tl::unexpected<Error>(made.error());
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().kind == ErrorKind::kUsage);
    CHECK(all_files(folder / "ckpt") == before);
  }
  // Neither run found an owner; the one that creates the owner file gets the checkpoint.
  std::filesystem::remove(owner);
  FaultyStore store(posix_store(), [&](const std::string& step, const std::string& path) {
    if (step == "create" && path == ".shardwright-owner") put(owner, other.text());
    return std::optional<Error>();
  });
  auto late = apply_plan(store, *checkpoint, plan, options, nullptr);
  REQUIRE_FALSE(late.has_value());
  CHECK(late.error().kind == ErrorKind::kUsage);
  CHECK(all_files(folder / "ckpt") == before);
}

TEST_CASE("a checkpoint that was saved again since its plan was made is not repaired in place") {
  TemporaryFolder folder;
  write_broken(folder / "ckpt");
  write_broken(folder / "other");
  auto checkpoint = opened(folder / "ckpt");
  Plan plan = plan_of(*checkpoint, {axis_moved()});
  ApplyOptions options;
  options.in_place = true;
  auto elsewhere = opened(folder / "other");
  REQUIRE(apply_plan(*elsewhere, plan_of(*elsewhere, {axis_moved()}), options));
  const std::string saved = contents(folder / "other/.metadata");
  put(folder / "ckpt/.metadata", saved);
  auto before = all_files(folder / "ckpt");
  CHECK_FALSE(apply_plan(*checkpoint, plan, options).has_value());
  CHECK(all_files(folder / "ckpt") == before);
}

TEST_CASE("in place, a crash or an error at any step leaves the old or the new state") {
  TemporaryFolder folder;
  const Values broken_image = [&] {
    write_broken(folder / "first");
    return values_of(*opened(folder / "first"), "down");
  }();
  for (bool crash : {false, true}) {
    for (bool certified : {false, true}) {
      bool finished = false;
      int step = 0, new_states = 0;
      for (; !finished && step < 200; ++step) {
        CAPTURE(crash);
        CAPTURE(step);
        std::string path = folder / ("c" + std::to_string(crash) + std::to_string(certified) +
                                     std::to_string(step));
        write_broken(path);
        if (certified) put(path + "/certificate.json", "an older one");
        auto before = all_files(path);
        auto checkpoint = opened(path);
        Plan plan = plan_of(*checkpoint, {axis_moved()});
        int at = 0;
        // Simulates a crash: from that step on everything fails.
        FaultyStore store(posix_store(), [&](const std::string&, const std::string& file) {
          bool fails = crash ? at++ >= step : at++ == step;
          return fails ? std::optional<Error>(Error{ErrorKind::kIo, "gone", {file}}) : std::nullopt;
        });
        ApplyOptions options;
        options.in_place = true;
        finished = apply_plan(store, *checkpoint, plan, options, nullptr).has_value();
        Values now = values_of(*opened(path), "down");
        CHECK((now == kDown || now == broken_image));
        new_states += now == kDown;
        if (!crash && !finished) {
          CHECK(now == broken_image);
          CHECK(all_files(path) == before);
        }
        // Undo is interrupted once, then run again.
        int undo_at = 0;
        FaultyStore stops(posix_store(), [&](const std::string&, const std::string& file) {
          return undo_at++ >= step % 6 ? std::optional<Error>(Error{ErrorKind::kIo, "gone", {file}})
                                       : std::nullopt;
        });
        (void)undo_repair(stops, path);
        now = values_of(*opened(path), "down");
        CHECK((now == kDown || now == broken_image));
        Status undone = undo_repair(path);
        if (!undone) CHECK(undone.error().kind == ErrorKind::kUsage);
        CHECK(values_of(*opened(path), "down") == broken_image);
        auto after = all_files(path);
        CHECK(after[path + "/.metadata"] == before[path + "/.metadata"]);
        CHECK(after == before);
      }
      CHECK(finished);
      CHECK(new_states > 0);
    }
  }
}
