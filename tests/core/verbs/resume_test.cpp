// Killed repairs on a store that loses everything not durable, and their outcomes.
#include "core/verbs/resume.h"

#include <doctest/doctest.h>

#include "core/exec/journal.h"
#include "core/faulty_store.h"
#include "core/repair/row_plan.h"
#include "core/repair/run/apply.h"
#include "core/verbs/repair_in_memory.h"

using namespace shw;
using namespace shw::test;

namespace {

using Survives = MemoryStore::Survives;

// All operations from that step on fail, as after a kill.
WriteFault killed_at(int step) {
  return [step, at = std::make_shared<int>(0)](const std::string&, const std::string& path) {
    return (*at)++ >= step ? std::optional<Error>(Error{ErrorKind::kIo, "killed", {path}})
                           : std::nullopt;
  };
}

}  // namespace

TEST_CASE("a repair that is cut off at any step is gone on with to the same bytes") {
  InMemory whole;
  REQUIRE(repair_in(whole.store, whole));
  Files wanted = files_below(whole.store, "/out");
  CHECK_FALSE(wanted.contains(kJournalFile));
  CHECK_FALSE(wanted.contains(kOwnerFile));
  std::size_t most_kept = 0;
  int twice = 0;
  for (Survives survives : {Survives::kOnlySynced, Survives::kNames}) {
    bool finished = false;
    int step = 0;
    for (; !finished && step < 300; ++step) {
      CAPTURE(step);
      InMemory made;
      FaultyStore dying(made.store, killed_at(step));
      finished = repair_in(dying, made).has_value();
      made.store.cut_power(survives);
      made.bury();
      if (!finished && step % 2 == 0) {
        // Kills the resumed run too.
        FaultyStore again(made.store, killed_at(step / 2));
        twice += repair_in(again, made).has_value() ? 0 : 1;
        made.store.cut_power(survives);
        made.bury();
      }
      if (!made.store.exists("/out")) {
        auto result = repair_in(made.store, made);
        if (!result) FAIL(result.error().message);
        most_kept = std::max(most_kept, result->files_kept);
      }
      Files files = files_below(made.store, "/out");
      // If it was killed after its last step, files of the run may be next to the result.
      files.erase(kJournalFile);
      files.erase(kOwnerFile);
      CHECK(files == wanted);
      for (const std::string& left : made.half_made())
        CHECK_FALSE(made.store.get(left + "/" + kJournalFile).has_value());
    }
    CHECK(finished);
    CHECK(step > 25);
  }
  CHECK(twice > 10);
  // All but .metadata and the certificate.
  CHECK(most_kept == wanted.size() - 2);
}

TEST_CASE("a repair in place that is cut off at any step is finished or taken back") {
  InMemory whole;
  auto repair_there = [](Store& store, const InMemory& made) {
    auto checkpoint = made.open("/ckpt");
    ApplyOptions options;
    options.in_place = true;
    return apply_plan(store, *checkpoint, plan_of_rows(*checkpoint, false), options);
  };
  Files before = files_below(whole.store, "/ckpt");
  REQUIRE(repair_there(whole.store, whole));
  Files after = files_below(whole.store, "/ckpt");
  CHECK(after.size() == before.size() + 2);
  int finished_later = 0, taken_back = 0;
  for (Survives survives : {Survives::kOnlySynced, Survives::kNames}) {
    for (bool back : {false, true}) {
      bool finished = false;
      int step = 0;
      for (; !finished && step < 200; ++step) {
        CAPTURE(step);
        InMemory made;
        FaultyStore dying(made.store, killed_at(step));
        finished = repair_there(dying, made).has_value();
        made.store.cut_power(survives);
        // The folder of a running process is not touched.
        auto bytes = std::as_bytes(std::span(made.dead));
        if (!made.store.get(std::string("/ckpt/") + kOwnerFile).value_or(Bytes{}).empty()) {
          CHECK_FALSE(verbs::resume(made.store, "/ckpt", {}).has_value());
          CHECK_FALSE(verbs::roll_back(made.store, "/ckpt").has_value());
          made.store.put(std::string("/ckpt/") + kOwnerFile, {bytes.begin(), bytes.end()});
        }
        auto state = in_place_state(*made.store.read_folder("/ckpt").value());
        REQUIRE(state.has_value());
        if (*state == InPlace::kNothing || *state == InPlace::kDone) continue;
        if (back) {
          auto rolled_back = verbs::roll_back(made.store, "/ckpt");
          if (!rolled_back) FAIL(rolled_back.error().message);
          CHECK(files_below(made.store, "/ckpt") == before);
          ++taken_back;
          continue;
        }
        auto resumed = verbs::resume(made.store, "/ckpt", {});
        if (!resumed) {
          CHECK(resumed.error().kind == ErrorKind::kUsage);
          CHECK(files_below(made.store, "/ckpt")[".metadata"] == before[".metadata"]);
          continue;
        }
        CHECK(files_below(made.store, "/ckpt") == after);
        ++finished_later;
      }
      CHECK(finished);
    }
  }
  CHECK(finished_later > 20);
  CHECK(taken_back > 20);
}

TEST_CASE("what undo needs is dropped by commit, and then there is nothing to take back") {
  InMemory made;
  auto checkpoint = made.open("/ckpt");
  ApplyOptions options;
  options.in_place = true;
  auto refused = verbs::commit(made.store, "/ckpt");
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().kind == ErrorKind::kUsage);
  REQUIRE(apply_plan(made.store, *checkpoint, plan_of_rows(*checkpoint, false), options));
  auto resumed = verbs::resume(made.store, "/ckpt", {});
  REQUIRE(resumed.has_value());
  CHECK(resumed->was_already_finished);
  REQUIRE(verbs::commit(made.store, "/ckpt"));
  CHECK_FALSE(made.store.get("/ckpt/.metadata.shardwright-undo").has_value());
  auto undone = undo_repair(made.store, "/ckpt");
  REQUIRE_FALSE(undone.has_value());
  CHECK(undone.error().kind == ErrorKind::kUsage);
  auto verdict = verify_repair(*made.open("/ckpt"));
  REQUIRE(verdict.has_value());
  CHECK(verdict->outcome == VerifyReport::Outcome::kProved);
}
