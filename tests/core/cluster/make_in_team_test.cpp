// Folders that several ranks write together, compared with those of a single process.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>

#include "core/cluster/loopback.h"
#include "core/cluster/transport_team.h"
#include "core/exec/journal.h"
#include "core/exec/part_assignment.h"
#include "core/faulty_store.h"
#include "core/formats/open.h"
#include "core/io/path_text.h"
#include "core/transform/drawn_plan.h"
#include "core/transform/lower.h"

using namespace shw;
using namespace shw::test;

namespace {

constexpr std::chrono::seconds kWait(60);

// Ranks are dealt to `machines` in turn, as some launchers do.
std::vector<Status> make_in_team(Store& store, const DrawnPlan& plan, const TargetState& all,
                                 const std::string& out, int workers, int machines,
                                 std::uint64_t memory) {
  return run_on_threads(workers, {}, [&](Transport& transport) -> Status {
    TransportTeam team(transport, kWait, std::to_string(transport.rank() % machines));
    TargetRun run = run_into(plan, all, out);
    run.team = &team;
    run.memory = memory;
    auto made = make_target(store, all, run, nullptr);
    if (!made) return tl::unexpected<Error>(std::move(made).error());
    return {};
  });
}

std::string worst_of(const std::vector<Status>& ended) {
  for (const Status& one : ended) {
    if (!one) return one.error().message;
  }
  return "";
}

std::vector<std::string> half_made_of(const Store& store) {
  std::vector<std::string> found;
  for (const std::string& name : store.names("/")) {
    if (name.find(kPartialMark) != std::string::npos) found.push_back(name);
  }
  return found;
}

}  // namespace

TEST_CASE("workers make of random plans what one makes, in rounds of any size") {
  int joined = 0;  // files that several workers wrote and one finished
  const char* asked = std::getenv("SHARDWRIGHT_PLANS");
  const int count = asked != nullptr ? std::atoi(asked) : 25;
  for (int i = 0; i < count; ++i) {
    Dice dice(static_cast<unsigned>(300'000 + i));
    DrawnPlan plan;
    draw_plan(dice, false, plan);
    TargetState all = taken(open_in(plan.store, "/ck"), plan.steps);
    auto alone = make_target(plan.store, all, run_into(plan, all, "/alone"), nullptr);
    if (!alone) FAIL(alone.error().message << "\n" << told(plan.steps));
    auto wanted = proved_files(plan, all, "/alone");
    for (int workers : {1, 2, 3, 8}) {
      const std::string out = "/out" + std::to_string(workers);
      const std::uint64_t memory = i % 2 == 0 ? 4096u * static_cast<unsigned>(workers) : 1u << 30;
      FaultyStore watched(plan.store, [&](const std::string& step, const std::string&) {
        if (step == "join") ++joined;
        return std::nullopt;
      });
      auto ended = make_in_team(watched, plan, all, out, workers, 1 + i % 3, memory);
      if (worst_of(ended) != "") FAIL(worst_of(ended) << "\n" << told(plan.steps));
      CHECK(half_made_of(plan.store).empty());
      CHECK(proved_files(plan, all, out) == wanted);
    }
  }
  CHECK(joined > count);
}

namespace {

// Bytes read of a program's sources, by any rank.
struct SourceReads {
  struct Range {
    std::string file;
    std::uint64_t first = 0, last = 0;
  };
  std::vector<Range> ranges;
  std::atomic<std::uint64_t> bytes{0};

  explicit SourceReads(const Program& program) {
    for (const ProgramSource& source : program.sources)
      ranges.push_back({program.names[source.file], source.offset, source.offset + source.length});
  }
  void note(const std::string& path, std::uint64_t offset, std::uint64_t length) {
    for (const Range& range : ranges) {
      if (!path.ends_with(range.file)) continue;
      const std::uint64_t first = std::max(offset, range.first);
      const std::uint64_t last = std::min(offset + length, range.last);
      if (first < last) bytes += last - first;
    }
  }
};

}  // namespace

TEST_CASE("workers of one machine or of several read together what one reads") {
  int moved = 0;
  for (int i = 0; i < 20; ++i) {
    Dice dice(static_cast<unsigned>(410'000 + i));
    DrawnPlan plan;
    draw_plan(dice, true, plan);
    TargetState planned = taken(open_in(plan.store, "/ck"), plan.steps);
    auto lowered = lower_target(planned, run_into(plan, planned, "/out").form, nullptr);
    REQUIRE(lowered.has_value());
    SourceReads reads(lowered->program);
    auto folder = plan.store.read_folder("/ck");
    REQUIRE(folder.has_value());
    auto opened = open_checkpoint(faulty_directory(
        *folder, [&](const std::string& path, std::uint64_t offset, std::size_t length) {
          reads.note(path, offset, length);
          return std::nullopt;
        }));
    REQUIRE(opened.has_value());
    TargetState all = taken(*opened, plan.steps);
    // Each rank reads headers for the places and checksums of items.
    reads.bytes = 0;
    REQUIRE(lower_target(all, run_into(plan, all, "/out").form, nullptr).has_value());
    const std::uint64_t headers = reads.bytes;
    reads.bytes = 0;
    REQUIRE(worst_of(make_in_team(plan.store, plan, all, "/out1", 1, 1, 1u << 30)) == "");
    const std::uint64_t alone = reads.bytes;
    if (alone > headers) ++moved;
    for (int workers : {2, 3, 5}) {
      reads.bytes = 0;
      auto ended = make_in_team(plan.store, plan, all, "/out" + std::to_string(workers), workers,
                                1 + i % 3, 1u << 30);
      if (worst_of(ended) != "") FAIL(worst_of(ended) << "\n" << told(plan.steps));
      const auto more = static_cast<std::uint64_t>(workers - 1);
      // Items that are verified separately may be read ahead at the end of a thread's run, which
      // varies.
      const std::uint64_t wanted = alone + more * 2 * headers, ahead = wanted / 16;
      CHECK(reads.bytes.load() + ahead >= wanted);
      CHECK(reads.bytes.load() <= wanted + ahead);
    }
  }
  CHECK(moved > 10);
}

namespace {

// Leftovers must be usable by another run and nothing else; also checks the message.
void check_half_made(const Store& store, const Error& first) {
  REQUIRE(half_made_of(store).size() == 1);
  auto folder = store.read_folder("/" + half_made_of(store).front());
  REQUIRE(folder.has_value());
  auto journal = read_journal(**folder);
  REQUIRE(journal.has_value());
  CHECK_FALSE(journal->files.empty());
  auto entries = (*folder)->list();
  REQUIRE(entries.has_value());
  CHECK(entries->size() == journal->files.size() + 2);
  CHECK(first.advice.find("`shardwright resume /out`") != std::string::npos);
}

}  // namespace

TEST_CASE(
    "a worker whose disk is full ends all, and what is durable is gone on with by any number") {
  int failed = 0, kept = 0, gone = 0;
  // Which worker is full first depends on the machine's load: a few more runs are made if it has
  // to.
  for (int i = 0; i < 24 || (i < 96 && (kept <= 3 || gone <= 3)); ++i) {
    Dice dice(static_cast<unsigned>(520'000 + i));
    DrawnPlan plan;
    draw_plan(dice, false, plan);
    TargetState all = taken(open_in(plan.store, "/ck"), plan.steps);
    auto alone = make_target(plan.store, all, run_into(plan, all, "/alone"), nullptr);
    REQUIRE(alone.has_value());
    auto wanted = proved_files(plan, all, "/alone");
    std::atomic<int> writes{0};
    const int full_from = static_cast<int>(dice.pick(1, 12));
    FaultyStore full(plan.store, [&](const std::string& step, const std::string& path) {
      bool is_full = path.ends_with(".distcp") &&
                     (step == "write" || step == "create" || step == "join") &&
                     ++writes >= full_from;
      return is_full ? std::optional<Error>(Error{ErrorKind::kIo, "no space left", {path}})
                     : std::nullopt;
    });
    auto ended = make_in_team(full, plan, all, "/out", 3, 1 + i % 3, 4096);
    const bool all_ended =
        std::all_of(ended.begin(), ended.end(), [](const Status& one) { return !one.has_value(); });
    if (worst_of(ended) != "") {
      ++failed;
      CHECK(all_ended);
      CHECK_FALSE(plan.store.exists("/out"));
    }
    if (!half_made_of(plan.store).empty()) {
      ++kept;
      check_half_made(plan.store, ended.front().error());
    } else if (!plan.store.exists("/out")) {
      ++gone;
    }
    if (plan.store.exists("/out")) continue;
    // Another run resumes or removes the leftovers.
    ended = make_in_team(plan.store, plan, all, "/out", 1 + i % 4, 1, 1u << 30);
    if (worst_of(ended) != "") FAIL(worst_of(ended) << "\n" << told(plan.steps));
    CHECK(half_made_of(plan.store).empty());
    CHECK(proved_files(plan, all, "/out") == wanted);
  }
  CHECK(failed > 12);
  CHECK(kept > 3);
  CHECK(gone > 3);
}

TEST_CASE("workers that were asked for other things write nothing") {
  Dice dice(77);
  DrawnPlan plan;
  draw_plan(dice, false, plan);
  TargetState all = taken(open_in(plan.store, "/ck"), plan.steps);
  auto ended = run_on_threads(3, {}, [&](Transport& transport) -> Status {
    TransportTeam team(transport, kWait);
    TargetRun run = run_into(plan, all, transport.rank() == 2 ? "/elsewhere" : "/out");
    run.team = &team;
    auto made = make_target(plan.store, all, run, nullptr);
    if (!made) return tl::unexpected<Error>(std::move(made).error());
    return {};
  });
  for (const Status& one : ended) {
    REQUIRE_FALSE(one.has_value());
    CHECK(one.error().message.find("nothing was written") != std::string::npos);
  }
  CHECK_FALSE(plan.store.exists("/out"));
  CHECK(half_made_of(plan.store).empty());
}

TEST_CASE("one large file is written by all workers of its machine, and by no other") {
  // Files of 4, 1, 4, 3 and 4 pieces of 100 bytes; of five ranks, the middle three share a machine.
  std::vector<FilePart> parts;
  for (std::uint32_t file = 0; file < 5; ++file) {
    const int pieces[] = {4, 1, 4, 3, 4};
    for (int i = 0; i < pieces[file]; ++i) {
      FilePart part;
      part.file = file;
      part.length = 100;
      parts.push_back(part);
    }
  }
  FileAssignment files;
  files.machine = {0, 1, 1, 1, 4};
  files.order = {0, 1, 2, 3, 4};
  files.writer = {0, 1, 1, 3, 4};
  PartAssignment dealt = assign_parts(files, parts);
  CHECK(dealt.writer == std::vector<std::uint32_t>{0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3, 4, 4, 4, 4});
  REQUIRE(dealt.shared.size() == 1);
  CHECK(dealt.shared[0].file == 2);
  CHECK(dealt.shared[0].owner == 1);
  // Ranks of two machines that alternate are grouped by machine.
  files.machine = {0, 1, 0};
  files.order = {0, 2, 1};
  files.writer = {0, 0, 2, 2, 1};
  dealt = assign_parts(files, parts);
  CHECK(dealt.own[0].last == dealt.own[2].first);
  CHECK(dealt.own[1].first == 12);
  CHECK(dealt.own[1].last == 16);
}
