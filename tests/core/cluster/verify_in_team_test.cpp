// Verdicts of several ranks that compare a result with its source, compared with that of one
// process.
#include <doctest/doctest.h>

#include <atomic>
#include <cstring>

#include "core/cluster/loopback.h"
#include "core/cluster/transport_team.h"
#include "core/faulty_store.h"
#include "core/formats/items/item_cursor.h"
#include "core/formats/open.h"
#include "core/repair/proof/verify.h"
#include "core/repair/proof/verify_words.h"
#include "core/transform/drawn_plan.h"
#include "core/transform/lower.h"

using namespace shw;
using namespace shw::test;

namespace {

// A folder of a store as a checkpoint that counts the bytes read of its data.
std::shared_ptr<const Checkpoint> counted(Store& store, const std::string& path,
                                          std::atomic<std::uint64_t>& bytes) {
  auto folder = store.read_folder(path);
  REQUIRE(folder.has_value());
  auto opened = open_checkpoint(faulty_directory(
      *folder, [&bytes](const std::string& file, std::uint64_t, std::size_t length) {
        if (file.ends_with(".distcp") || file.ends_with(".safetensors")) bytes += length;
        return std::nullopt;
      }));
  REQUIRE(opened.has_value());
  return *opened;
}

// The verdict of each rank, and the bytes that all read together.
struct TeamSays {
  std::vector<Result<VerifyReport>> reports;
  std::uint64_t bytes = 0;
};
TeamSays verified_by(Store& store, const std::string& source, const std::string& result,
                     int workers) {
  std::atomic<std::uint64_t> bytes{0};
  TeamSays says;
  says.reports.resize(static_cast<std::size_t>(workers));
  auto from = counted(store, source, bytes), made = counted(store, result, bytes);
  bytes = 0;
  auto ended = run_on_threads(workers, {}, [&](Transport& transport) -> Status {
    TransportTeam team(transport, std::chrono::seconds(60));
    auto& report = says.reports[static_cast<std::size_t>(transport.rank())];
    report = verify_repair(*made, nullptr, from, workers == 1 ? nullptr : &team);
    return report ? Status{} : Status(tl::unexpected<Error>(report.error()));
  });
  says.bytes = bytes;
  return says;
}

// Flips one bit in the first element of the largest tile of a folder.
void bend(MemoryStore& store, const std::string& folder) {
  auto checkpoint = open_in(store, folder);
  ItemCursor boxes(*checkpoint);
  std::string path;
  std::uint64_t largest = 0, at = 0;
  for (std::uint32_t i = 0; i < checkpoint->chunk_count(); ++i) {
    auto header = boxes.header(ChunkId{i});
    if (!header || header->payload_length <= largest) continue;
    largest = header->payload_length;
    at = header->payload_offset;
    path = folder + "/" + checkpoint->file(checkpoint->item(ChunkId{i})->file).path;
  }
  if (largest == 0) return;
  Bytes bytes = *store.get(path);
  bytes[at] ^= std::byte{1};
  store.put(path, std::move(bytes));
}

}  // namespace

TEST_CASE("workers hold a result against its source as one does, and read as much together") {
  int proved = 0, broken = 0, compared = 0;
  std::uint64_t read_alone = 0, read_together = 0;
  for (int i = 0; i < 16; ++i) {
    Dice dice(static_cast<unsigned>(630'000 + i));
    DrawnPlan plan;
    draw_plan(dice, false, plan);
    TargetState all = taken(open_in(plan.store, "/ck"), plan.steps);
    REQUIRE(make_target(plan.store, all, run_into(plan, all, "/out"), nullptr).has_value());
    if (i % 3 == 1) bend(plan.store, "/out");
    if (i % 3 == 2) bend(plan.store, "/ck");
    TeamSays alone = verified_by(plan.store, "/ck", "/out", 1);
    REQUIRE(alone.reports[0].has_value());
    const VerifyReport& wanted = *alone.reports[0];
    if (wanted.outcome == VerifyReport::Outcome::kProved) ++proved;
    if (wanted.outcome == VerifyReport::Outcome::kBroken) ++broken;
    if (wanted.against && !wanted.against->differences.empty()) ++compared;
    for (int workers : {2, 3, 5}) {
      TeamSays together = verified_by(plan.store, "/ck", "/out", workers);
      for (const auto& report : together.reports) {
        if (!report) FAIL(report.error().message);
        CHECK(packed(*report) == packed(wanted));
      }
      read_alone += alone.bytes;
      read_together += together.bytes;
    }
  }
  // Except for headers of items, which each comparing rank reads itself, and for small items, which
  // are read with those behind them: here all of a file.
  CHECK(read_together < read_alone + read_alone / 3);
  CHECK(proved > 3);
  CHECK(broken > 3);
  CHECK(compared > 2);
}

TEST_CASE("a worker that sees another source ends all of them, who are told which one it is") {
  Dice dice(640'000);
  DrawnPlan plan, other;
  draw_plan(dice, false, plan);
  draw_plan(dice, false, other);
  TargetState all = taken(open_in(plan.store, "/ck"), plan.steps);
  REQUIRE(make_target(plan.store, all, run_into(plan, all, "/out"), nullptr).has_value());
  auto ended = run_on_threads(3, {}, [&](Transport& transport) -> Status {
    TransportTeam team(transport, std::chrono::seconds(60));
    auto result = open_in(plan.store, "/out");
    auto source = open_in(transport.rank() == 1 ? other.store : plan.store, "/ck");
    auto report = verify_repair(*result, nullptr, source, &team);
    return report ? Status{} : Status(tl::unexpected<Error>(report.error()));
  });
  for (std::size_t rank = 0; rank < ended.size(); ++rank) {
    REQUIRE_FALSE(ended[rank].has_value());
    CHECK(ended[rank].error().message.find("sees another source") != std::string::npos);
  }
}

TEST_CASE("what workers tell each other of a comparison comes out as it went in") {
  Mismatch mismatch{Extents{3, -1, 7}, "0.5 (0x3f000000)", "nan"};
  auto found = decode_compared_chunk(packed(ComparedChunk(ComparedTile{mismatch})));
  REQUIRE((found && *found && (*found)->mismatch));
  CHECK((*found)->mismatch->index == mismatch.index);
  CHECK((*found)->mismatch->value == mismatch.value);
  CHECK((*found)->mismatch->expected == mismatch.expected);
  found = decode_compared_chunk(packed(ComparedChunk(ComparedTile{{}, 7})));
  REQUIRE((found && *found));
  CHECK_FALSE((*found)->mismatch.has_value());
  CHECK((*found)->out_of_range == 7);
  Error error{ErrorKind::kDamaged, "comes from nowhere", {"a", 7, "t"}, "look"};
  found = decode_compared_chunk(packed(ComparedChunk(tl::unexpected<Error>(error))));
  REQUIRE((found && !*found));
  CHECK((*found).error().message == error.message);
  CHECK((*found).error().place.tensor == "t");
  Result<std::optional<Error>> object = std::optional<Error>(error);
  auto told = decode_compared_object(packed(object));
  REQUIRE((told && *told && **told));
  CHECK((**told)->advice == "look");
  VerifyReport report{VerifyReport::Outcome::kBroken, {"a", ""}, 3, -4, 5, {}};
  report.against = SourceReport{"/ck", 77, {{"w", Extents{1}, "f", "1", "2"}}, 9};
  const Bytes words = packed(report);
  auto again = decode_verify_report(words);
  REQUIRE(again.has_value());
  CHECK(packed(*again) == words);
  CHECK(again->kept == -4);
  CHECK(again->against->differences.front().expected == "2");
  // A message that is cut off anywhere gives an error, never a report.
  for (std::size_t length = 0; length < words.size(); ++length)
    CHECK_FALSE(decode_verify_report(BytesView(words).first(length)).has_value());
}
