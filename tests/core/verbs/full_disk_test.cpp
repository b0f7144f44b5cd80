// A full or failing disk during a repair: durable files stay for a resumed run, and otherwise
// nothing stays.
#include <doctest/doctest.h>

#include "core/exec/journal.h"
#include "core/faulty_store.h"
#include "core/verbs/repair_in_memory.h"

using namespace shw;
using namespace shw::test;

namespace {

bool needs_room(const std::string& step) {
  return step == "write" || step == "create" || step == "copy" || step == "finish" ||
         step == "sync" || step == "make directory";
}

// From that step on, operations that need space fail; deletions work.
WriteFault full_from(int step) {
  return [step, at = std::make_shared<int>(0)](const std::string& doing, const std::string& path) {
    const bool is_full = needs_room(doing) && (*at)++ >= step;
    return is_full ? std::optional<Error>(Error{ErrorKind::kIo, "No space left on device", {path}})
                   : std::nullopt;
  };
}

std::size_t durable_in(const InMemory& made, const std::string& partial) {
  auto folder = made.store.read_folder(partial);
  REQUIRE(folder.has_value());
  auto journal = read_journal(**folder);
  return journal ? journal->files.size() : 0;
}

// Checks that the folder has what a resumed run needs, and no more.
void check_kept(const InMemory& made, const Error& error) {
  const auto half_made = made.half_made();
  REQUIRE(half_made.size() == 1);
  const Files files = files_below(made.store, half_made.front());
  // The owner file may be missing, because there was no space for it.
  CHECK(files.size() <= durable_in(made, half_made.front()) + 3);
  CHECK(files.size() > durable_in(made, half_made.front()));
  CHECK(error.advice.find("`shardwright resume /out`") != std::string::npos);
  CHECK(error.advice.find("`shardwright resume --roll-back /out`") != std::string::npos);
}

}  // namespace

TEST_CASE("what is durable when a disk is full is gone on with to the same bytes") {
  InMemory whole;
  REQUIRE(repair_in(whole.store, whole));
  const Files wanted = files_below(whole.store, "/out");
  bool finished = false;
  int kept = 0, gone = 0, step = 0;
  for (; !finished && step < 300; ++step) {
    CAPTURE(step);
    InMemory made;
    const Files before = files_below(made.store, "/ckpt");
    FaultyStore full(made.store, full_from(step));
    auto result = repair_in(full, made);
    finished = result.has_value();
    CHECK(files_below(made.store, "/ckpt") == before);
    CHECK(made.store.exists("/out") == finished);
    if (finished) break;
    if (made.half_made().empty()) {
      ++gone;
      CHECK(result.error().advice.find("resume") == std::string::npos);
      continue;
    }
    ++kept;
    check_kept(made, result.error());
    CHECK(durable_in(made, made.half_made().front()) != 0);
    made.bury();
    // First the disk is still full, then it has space.
    FaultyStore still(made.store, full_from(step % 3));
    auto again = repair_in(still, made);
    REQUIRE_FALSE(again.has_value());
    CHECK(again.error().kind == ErrorKind::kIo);
    check_kept(made, again.error());
    made.bury();
    auto resumed = repair_in(made.store, made);
    if (!resumed) FAIL(resumed.error().message);
    CHECK(resumed->files_kept != 0);
    CHECK(files_below(made.store, "/out") == wanted);
    CHECK(made.half_made().empty());
  }
  CHECK(finished);
  CHECK(gone > 5);
  CHECK(kept > 10);
}

TEST_CASE("a disk that is lost and comes back has what was durable") {
  InMemory whole;
  REQUIRE(repair_in(whole.store, whole));
  const Files wanted = files_below(whole.store, "/out");
  bool finished = false;
  int kept = 0;
  for (int step = 0; !finished && step < 300; ++step) {
    CAPTURE(step);
    InMemory made;
    bool lost = false;
    int at = 0;
    auto loses = [&](const std::string&, const std::string& path) {
      lost = lost || at++ >= step;
      return lost ? std::optional<Error>(Error{ErrorKind::kIo, "No such device", {path}})
                  : std::nullopt;
    };
    auto unread = [&](const std::string& path, std::uint64_t, std::size_t) {
      return lost ? std::optional<Error>(Error{ErrorKind::kIo, "No such device", {path}})
                  : std::nullopt;
    };
    FaultyStore dying(made.store, loses, unread);
    auto result = repair_in(dying, made);
    finished = result.has_value();
    made.store.cut_power(MemoryStore::Survives::kNames);
    made.bury();
    if (made.store.exists("/out")) continue;
    REQUIRE_FALSE(finished);
    // Deletion failed too, which the error mentions.
    if (!made.half_made().empty()) CHECK(result.error().advice != "");
    auto again = repair_in(made.store, made);
    if (!again) FAIL(again.error().message);
    kept += again->files_kept != 0 ? 1 : 0;
    CHECK(files_below(made.store, "/out") == wanted);
  }
  CHECK(finished);
  CHECK(kept > 10);
}

TEST_CASE("nothing stays of a repair whose source was changed under a full disk") {
  InMemory made;
  int writes = 0;
  FaultyStore full(made.store, [&](const std::string& step, const std::string& path) {
    if (step != "create" || path != ".metadata") return std::optional<Error>();
    ++writes;
    made.store.put("/ckpt/__1_0.distcp", Bytes(10));
    return std::optional<Error>(Error{ErrorKind::kIo, "No space left on device", {path}});
  });
  auto result = repair_in(full, made);
  REQUIRE_FALSE(result.has_value());
  CHECK(writes == 1);
  CHECK(made.half_made().empty());
  CHECK(result.error().advice.find("resume") == std::string::npos);
}
