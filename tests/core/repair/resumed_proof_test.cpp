// Reads of the source in a resumed run: none for finished tiles, and so no decoded items beyond the
// memory limit.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>

#include "core/counting_store.h"
#include "core/dead_process.h"
#include "core/faulty_store.h"
#include "core/io/path_text.h"
#include "core/memory_store.h"
#include "core/put_folder.h"
#include "core/transform/drawn_plan.h"

using namespace shw;

namespace {

// A checkpoint with counted reads, in a store without counting.
struct CountedSource : test::CountingStore {
  explicit CountedSource(const std::string& folder) { test::put_folder(store, folder, "/ck"); }
  std::shared_ptr<const Checkpoint> open() {
    auto checkpoint = open_checkpoint(counting.read_folder("/ck").value());
    REQUIRE(checkpoint.has_value());
    return *checkpoint;
  }
};

TargetRun run_of(const std::string& out) {
  TargetRun run;
  run.form = {&test::dcp_format(), 0, out};
  run.steps = {"resharded"};
  return run;
}

// Kills the repair when all tiles are durable.
void kill_before_metadata(MemoryStore& store, const TargetState& all) {
  bool dead = false;
  FaultyStore dying(store, [&](const std::string& step, const std::string& path) {
    dead = dead || (step == "create" && path == ".metadata");
    return dead ? std::optional<Error>(Error{ErrorKind::kIo, "killed", {path}}) : std::nullopt;
  });
  REQUIRE_FALSE(make_target(dying, all, run_of("/out"), nullptr).has_value());
  const std::string owner = test::dead_process();
  auto bytes = std::as_bytes(std::span(owner));
  for (const std::string& name : store.names("/")) {
    if (name.find(kPartialMark) != std::string::npos)
      store.put("/" + name + "/" + kOwnerFile, {bytes.begin(), bytes.end()});
  }
}

std::vector<Step> resharded() {
  return {ReshardStep{{"*"}, {{{"dp", 3}}}, {{Placement::Kind::kShard, 0, 1}}}};
}

}  // namespace

TEST_CASE("a run that is gone on with decodes nothing of tiles that are there") {
  for (const char* fixture : {"/torch-2.14/healthy_zstd/ckpt", "/torch-2.14/healthy_moe_ep/ckpt"}) {
    CAPTURE(fixture);
    CountedSource source(std::string(SHW_TEST_DATA) + fixture);
    const TargetState all = test::taken(source.open(), resharded());
    *source.read = 0;
    auto lowered = lower_target(all, run_of("/out").form);
    REQUIRE(lowered.has_value());
    const std::uint64_t planned = *source.read;
    *source.read = 0;
    REQUIRE(make_target(source.store, all, run_of("/whole"), nullptr).has_value());
    const std::uint64_t whole_run = *source.read;
    kill_before_metadata(source.store, all);
    *source.read = 0;
    auto resumed = make_target(source.store, all, run_of("/out"), nullptr);
    if (!resumed) FAIL(resumed.error().message);
    CHECK(resumed->files_kept > 1);
    // Kept tiles are compared with their item in the source.
    std::uint64_t kept = 0;
    auto add = [&](const std::optional<ItemPlace>& item) {
      kept += item ? static_cast<std::uint64_t>(item->length) : 0;
    };
    for (const NonTensorEntry& row : all.source().objects()) add(row.item);
    for (const OutputTensor& tensor : lowered->outputs.tensors) {
      for (const OutputTile& tile : tensor.tiles) {
        if (tile.kept) add(all.source().item(*tile.kept));
      }
    }
    // Headers are read again for the checksums. Uncompressed items that were read before are read
    // again, because it is unknown whether their checksums were verified.
    if (!all.source().transforms(ChunkId{0}).empty())
      CHECK(source.read->load() <= 2 * planned + kept);
    CHECK(whole_run > planned + kept);
    auto made = source.store.read_folder("/out");
    REQUIRE(made.has_value());
    auto entries = (*made)->list();
    REQUIRE(entries.has_value());
    for (const Entry& entry : *entries) {
      // These two contain the folder's name.
      if (entry.path == ".metadata" || entry.path == "certificate.json") continue;
      CHECK(source.store.get("/out/" + entry.path) == source.store.get("/whole/" + entry.path));
    }
    auto proof = verify_repair(*open_checkpoint(*made).value());
    REQUIRE(proof.has_value());
    CHECK(proof->outcome == VerifyReport::Outcome::kProved);
  }
}

TEST_CASE("a tile that is not what was read for it before the kill is not proved after it") {
  CountedSource source(SHW_TEST_DATA "/torch-2.14/healthy_zstd/ckpt");
  const TargetState all = test::taken(source.open(), resharded());
  kill_before_metadata(source.store, all);
  int changed = 0;
  for (const std::string& name : source.store.names("/")) {
    const std::string path = "/" + name + "/__0_0.distcp";
    auto bytes = source.store.get(path);
    if (name.find(kPartialMark) == std::string::npos || !bytes) continue;
    for (std::byte& byte : *bytes) changed += byte == std::byte{0x3F} ? 1 : 0;
    std::replace(bytes->begin(), bytes->end(), std::byte{0x3F}, std::byte{0x3E});
    source.store.put(path, *bytes);
  }
  REQUIRE(changed > 0);
  auto resumed = make_target(source.store, all, run_of("/out"), nullptr);
  REQUIRE_FALSE(resumed.has_value());
  CHECK_FALSE(source.store.exists("/out"));
}
