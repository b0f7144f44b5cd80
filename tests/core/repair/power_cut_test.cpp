// Repairs on a store that loses everything not durable when the power is cut.
#include <doctest/doctest.h>

#include <filesystem>

#include "core/faulty_store.h"
#include "core/memory_store.h"
#include "core/repair/make_checkpoint.h"
#include "core/repair/row_plan.h"
#include "core/repair/run/apply.h"
#include "core/temporary_folder.h"

using namespace shw;

namespace {

using Survives = MemoryStore::Survives;

Bytes stored_bytes(const std::string& text) {
  auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// "/ckpt": [6, 4] in two row tiles, with a file next to them.
std::map<std::string, Bytes> broken_files() {
  TemporaryFolder folder;
  MadeTensor w{"w", {6, 4}, {}};
  for (std::int64_t i = 0; i < 2; ++i) {
    Values values;
    for (std::int64_t k = 0; k < 12; ++k) values.push_back(100 * i + k);
    w.chunks.push_back({{{3 * i, 0}, {3, 4}}, {3, 4}, values, static_cast<std::uint32_t>(i)});
  }
  write_checkpoint(folder / "ckpt", {w});
  std::filesystem::create_directory(folder / "ckpt/beside");
  put(folder / "ckpt/beside/config.json", "{}");
  std::map<std::string, Bytes> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
    std::string path = entry.path().string();
    if (entry.is_regular_file())
      files[path.substr(folder.path().size())] = stored_bytes(contents(path));
  }
  return files;
}

std::shared_ptr<const Checkpoint> opened_in_store(const Store& store, const std::string& path) {
  auto folder = store.read_folder(path);
  REQUIRE(folder.has_value());
  auto checkpoint = open_checkpoint(*folder);
  if (!checkpoint) FAIL(checkpoint.error().message);
  return *checkpoint;
}

// All operations from that step on fail.
WriteFault dead_from(int step) {
  return [step, at = std::make_shared<int>(0)](const std::string&, const std::string& path) {
    return (*at)++ >= step ? std::optional<Error>(Error{ErrorKind::kIo, "gone", {path}})
                           : std::nullopt;
  };
}

struct StoredBroken {
  std::map<std::string, Bytes> files = broken_files();
  MemoryStore store;

  StoredBroken() {
    for (const auto& [path, bytes] : files) store.put(path, bytes);
  }
  // The checkpoint is unchanged, byte for byte, with none of our files left in it.
  void check_is_as_it_was() const {
    for (const auto& [path, bytes] : files) CHECK(store.get(path) == bytes);
    CHECK(store.read_folder("/ckpt").value()->list()->size() == files.size());
  }
};

}  // namespace

TEST_CASE("a new directory is whole or not there, wherever the power is cut") {
  for (Survives survives : {Survives::kOnlySynced, Survives::kNames}) {
    for (bool moves : {true, false}) {
      bool finished = false;
      int step = 0, whole = 0;
      for (; !finished && step < 200; ++step) {
        CAPTURE(step);
        CAPTURE(moves);
        StoredBroken made;
        auto checkpoint = opened_in_store(made.store, "/ckpt");
        FaultyStore store(made.store, dead_from(step));
        finished =
            apply_plan(store, *checkpoint, plan_of_rows(*checkpoint, moves), {"/out"}).has_value();
        made.store.cut_power(survives);
        made.check_is_as_it_was();
        CHECK((!finished || made.store.exists("/out")));
        if (!made.store.exists("/out")) continue;
        ++whole;
        auto result = opened_in_store(made.store, "/out");
        auto verdict = verify_repair(*result);
        REQUIRE(verdict.has_value());
        CHECK(verdict->outcome == VerifyReport::Outcome::kProved);
        CHECK(made.store.get("/out/beside/config.json") == stored_bytes("{}"));
      }
      CHECK(finished);
      CHECK(step > 15);
      CHECK(whole == 1);
    }
  }
}

TEST_CASE("in place it is old or new, wherever the power is cut, and undo takes it back") {
  for (Survives survives : {Survives::kOnlySynced, Survives::kNames}) {
    bool finished = false;
    int step = 0, new_states = 0;
    for (; !finished && step < 200; ++step) {
      CAPTURE(step);
      StoredBroken made;
      auto checkpoint = opened_in_store(made.store, "/ckpt");
      Values before = values_of(*checkpoint, "w");
      ApplyOptions options;
      options.in_place = true;
      FaultyStore store(made.store, dead_from(step));
      finished =
          apply_plan(store, *checkpoint, plan_of_rows(*checkpoint, false), options).has_value();
      made.store.cut_power(survives);
      bool is_new = values_of(*opened_in_store(made.store, "/ckpt"), "w") != before;
      new_states += is_new;
      CHECK((!finished || is_new));
      CHECK((is_new || made.store.get("/ckpt/.metadata") == made.files["/ckpt/.metadata"]));
      // The power fails again during the undo.
      FaultyStore again(made.store, dead_from(step % 7));
      static_cast<void>(undo_repair(again, "/ckpt"));
      made.store.cut_power(survives);
      CHECK(opened_in_store(made.store, "/ckpt")->tensor_count() == 1);
      Status undone = undo_repair(made.store, "/ckpt");
      if (!undone) CHECK(undone.error().kind == ErrorKind::kUsage);
      made.check_is_as_it_was();
    }
    CHECK(finished);
    CHECK(new_states > 0);
  }
}
