// Runs whose decoded items exceed the memory limit: each is decoded once into an unnamed file, and
// the result equals that of a run with unlimited memory.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>

#include "core/cluster/loopback.h"
#include "core/cluster/transport_team.h"
#include "core/counting_store.h"
#include "core/dead_process.h"
#include "core/exec/forecast.h"
#include "core/exec/partial_folder.h"
#include "core/faulty_store.h"
#include "core/io/path_text.h"
#include "core/memory_store.h"
#include "core/put_folder.h"
#include "core/transform/drawn_plan.h"
#include "core/transform/lower.h"

using namespace shw;

namespace {

// Smaller than any of its items.
constexpr std::uint64_t kFewBytes = 256;

// A compressed checkpoint with counted reads, in a store without counting.
struct Compressed : test::CountingStore {
  std::shared_ptr<const Checkpoint> source;

  Compressed() {
    test::put_folder(store, SHW_TEST_DATA "/torch-2.14/healthy_zstd/ckpt", "/ck");
    source = open_checkpoint(counting.read_folder("/ck").value()).value();
  }
  std::uint64_t item_bytes() const {
    std::uint64_t bytes = 0;
    for (std::uint32_t i = 0; i < source->chunk_count(); ++i)
      bytes += static_cast<std::uint64_t>(source->item(ChunkId{i}).value().length);
    return bytes;
  }
};

const Format& format_called(std::string_view name) {
  for (const FormatRow& row : formats()) {
    if (row.format->name == name) return *row.format;
  }
  FAIL("there is no such format");
  return kUnknownFormat;
}

// Drops entries that safetensors cannot store; a folder of safetensors gets several files.
Plan plan_of(Step step, const char* format) {
  Plan plan;
  plan.steps = {DropStep{{"obj.*"}}, std::move(step)};
  plan.format = format;
  plan.shard_bytes = format_called(format).traits.has_one_piece_per_tensor ? 3000 : 0;
  return plan;
}

TargetRun run_of(const Checkpoint& source, Plan plan, const std::string& out,
                 std::uint64_t memory) {
  TargetRun run;
  run.form = {&format_called(plan.format), plan.shard_bytes, out};
  for (const Step& step : plan.steps) run.steps.push_back(to_text(step));
  run.steps.push_back("written as " + plan.format);
  plan.fingerprint = fingerprint(source);
  run.plan = encode_stored_plan(plan_to_json(plan));
  run.memory = memory;
  return run;
}

Step in_rows(std::int64_t ranks) {
  return ReshardStep{{"*"}, {{{"dp", ranks}}}, {{Placement::Kind::kShard, 0, 1}}};
}
// Every tile needs elements of each item of the tensor.
Step in_columns() {
  return ReshardStep{{"*"}, {{{"dp", 3}}}, {{Placement::Kind::kShard, 1, 1}}};
}

// Files of a folder whose contents do not depend on its name.
std::map<std::string, Bytes> files_of(const Store& store, const std::string& folder) {
  std::map<std::string, Bytes> files;
  auto directory = store.read_folder(folder);
  REQUIRE(directory.has_value());
  const std::vector<Entry> entries = (*directory)->list().value();
  for (const Entry& entry : entries) {
    if (entry.path == ".metadata" || entry.path == "certificate.json") continue;
    auto file = (*directory)->open(entry.path).value();
    files[entry.path] = read_bytes(*file, 0, file->size()).value();
  }
  return files;
}

std::vector<std::string> half_made(const Store& store) {
  std::vector<std::string> found = store.names("/");
  std::erase_if(
      found, [](const std::string& name) { return name.find(kPartialMark) == std::string::npos; });
  return found;
}

}  // namespace

TEST_CASE("what has no room in memory is decoded once, and comes to the same bytes") {
  for (const char* format : {"dcp", "safetensors", "torch"}) {
    for (const Step& step : {in_rows(3), in_rows(1), in_columns()}) {
      CAPTURE(format);
      Compressed all;
      const Plan plan = plan_of(step, format);
      const TargetState arranged = test::taken(all.source, plan.steps);
      const auto run = [&](const char* out, std::uint64_t memory) {
        return make_target(all.store, arranged, run_of(*all.source, plan, out, memory), nullptr);
      };
      *all.read = 0;
      auto usual = run("/usual", 1 << 30);
      if (!usual) FAIL(usual.error().message);
      CHECK(all.store.scratch().most == 0);
      const std::uint64_t with_memory = all.read->exchange(0);
      auto made = run("/beyond", kFewBytes);
      if (!made) FAIL(made.error().message);
      CHECK(all.store.scratch().most > 0);
      CHECK(all.store.scratch().now == 0);
      // Read once for headers and once for elements.
      CHECK(*all.read == with_memory);
      CHECK(*all.read <= 2 * all.item_bytes());
      CHECK(files_of(all.store, "/beyond") == files_of(all.store, "/usual"));
      CHECK(half_made(all.store).empty());
      auto proof = verify_repair(*test::open_in(all.store, "/beyond"), nullptr, all.source);
      REQUIRE(proof.has_value());
      if (proof->outcome != VerifyReport::Outcome::kProved) FAIL(proof->reasons.front());
    }
  }
}

TEST_CASE("a forecast says what is decoded on the disk, and a run takes no more") {
  for (const Step& step : {in_rows(3), in_columns()}) {
    Compressed all;
    const Plan plan = plan_of(step, "dcp");
    const TargetState arranged = test::taken(all.source, plan.steps);
    const TargetRun run = run_of(*all.source, plan, "/out", kFewBytes);
    auto lowered = lower_target(arranged, run.form);
    REQUIRE(lowered.has_value());
    auto roomy = forecast(lowered->program, lowered->inputs, 0, 1 << 30);
    REQUIRE(roomy.has_value());
    CHECK(roomy->decoded_items == 0);
    CHECK(roomy->decoded_on_disk == 0);
    auto tight = forecast(lowered->program, lowered->inputs, 0, kFewBytes);
    REQUIRE(tight.has_value());
    CHECK(tight->decoded_items > 0);
    REQUIRE(make_target(all.store, arranged, run, nullptr));
    // torch.save puts other bytes around the elements.
    CHECK(all.store.scratch().most <= tight->decoded_on_disk + 4096 * tight->decoded_items);
  }
}

TEST_CASE(
    "a disk that fails what is decoded leaves nothing but what is durable, whenever it does") {
  Compressed all;
  const Plan plan = plan_of(in_columns(), "dcp");
  const TargetState arranged = test::taken(all.source, plan.steps);
  const TargetRun run = run_of(*all.source, plan, "/out", kFewBytes);
  for (const char* step : {"create", "write", "read"}) {
    int failed = 0;
    for (int at = 0; at < 100'000; at += 1 + at / 4) {
      CAPTURE(step);
      CAPTURE(at);
      std::atomic<int> seen{0};
      auto fault = [&](const std::string& now, const std::string& path) -> std::optional<Error> {
        if (now != step || path.find("(decoded)") == std::string::npos || seen++ != at)
          return std::nullopt;
        return Error{ErrorKind::kIo, "no space is left", {path}};
      };
      FaultyStore faulty(all.store, fault,
                         [&](const std::string& path, auto, auto) { return fault("read", path); });
      auto made = make_target(faulty, arranged, run, nullptr);
      CHECK(all.store.scratch().now == 0);
      CHECK(all.store.exists("/out") == made.has_value());
      if (made) break;
      ++failed;
      CHECK(made.error().message == "no space is left");
      const auto left = half_made(all.store);
      const bool is_kept = made.error().advice.find("shardwright resume") != std::string::npos;
      CHECK(left.size() == (is_kept ? 1 : 0));
      for (const std::string& name : left) {
        CHECK(has_durable_files(all.store, "/" + name));
        REQUIRE(all.store.discard("/" + name, kPartialMark));
      }
    }
    CHECK(failed > 1);
    REQUIRE(all.store.exists("/out"));
    REQUIRE(all.store.publish("/out", std::string("/done-") + step).has_value());
  }
}

TEST_CASE("a run that was killed while it decoded is gone on with") {
  Compressed all;
  const Plan plan = plan_of(in_rows(3), "dcp");
  const TargetState arranged = test::taken(all.source, plan.steps);
  const auto run = [&](const std::string& out, std::uint64_t memory) {
    return run_of(*all.source, plan, out, memory);
  };
  REQUIRE(make_target(all.store, arranged, run("/usual", 1 << 30), nullptr));
  bool finished = false;
  int resumed = 0;
  for (int at = 0; !finished && at < 100'000; at += 1 + at / 4) {
    CAPTURE(at);
    std::atomic<int> seen{0};
    FaultyStore dying(all.store, [&](const std::string&, const std::string& path) {
      return seen++ >= at ? std::optional<Error>(Error{ErrorKind::kIo, "killed", {path}})
                          : std::nullopt;
    });
    const std::string out = "/out" + std::to_string(at);
    finished = make_target(dying, arranged, run(out, kFewBytes), nullptr).has_value();
    if (finished) break;
    CHECK(all.store.scratch().now == 0);
    const std::string owner = test::dead_process();
    auto bytes = std::as_bytes(std::span(owner));
    for (const std::string& name : half_made(all.store))
      all.store.put("/" + name + "/" + kOwnerFile, {bytes.begin(), bytes.end()});
    auto again = make_target(all.store, arranged, run(out, kFewBytes), nullptr);
    if (!again) FAIL(again.error().message);
    resumed += again->files_kept != 0 ? 1 : 0;
    CHECK(files_of(all.store, out) == files_of(all.store, "/usual"));
  }
  CHECK(finished);
  CHECK(resumed > 0);
}

TEST_CASE("workers that decode on the disk make what one makes") {
  Compressed all;
  for (const Step& step : {in_rows(4), in_columns()}) {
    const Plan plan = plan_of(step, "dcp");
    const TargetState arranged = test::taken(all.source, plan.steps);
    MemoryStore& store = all.store;
    const std::string usual = "/usual" + std::to_string(store.names("/").size());
    auto alone = make_target(store, arranged, run_of(*all.source, plan, usual, 1 << 30), nullptr);
    if (!alone) FAIL(alone.error().message);
    const auto wanted = files_of(store, usual);
    for (int workers : {2, 3, 5}) {
      const std::string out = "/team" + std::to_string(store.names("/").size());
      std::vector<Status> ended = run_on_threads(workers, {}, [&](Transport& transport) -> Status {
        TransportTeam team(transport, std::chrono::seconds(60),
                           std::to_string(transport.rank() % 2));
        TargetRun run =
            run_of(*all.source, plan, out, kFewBytes * static_cast<std::uint64_t>(workers));
        run.team = &team;
        auto made = make_target(store, arranged, run, nullptr);
        if (!made) return tl::unexpected<Error>(std::move(made).error());
        return {};
      });
      for (const Status& one : ended) {
        if (!one) FAIL(one.error().message);
      }
      CHECK(files_of(store, out) == wanted);
      CHECK(store.scratch().now == 0);
    }
  }
  CHECK(all.store.scratch().most > 0);
}
