// Items that are copied into files by several ranks: the copying rank sends their hashes to the
// others, so that no rank reads them again.
#include <doctest/doctest.h>

#include <atomic>

#include "core/cluster/loopback.h"
#include "core/cluster/transport_team.h"
#include "core/faulty_store.h"
#include "core/transform/drawn_plan.h"

using namespace shw;
using namespace shw::test;

TEST_CASE("what is copied in a team is read once from the source by all of it together") {
  MemoryStore store;
  Dice dice(20261123);
  PlainCheckpoint tensors;
  for (int i = 0; i < 6; ++i) {
    PlainTensor tensor{Dtype::kFloat32, {40, 50}, {}, std::vector<bool>(2000, false)};
    for (int k = 0; k < 2000; ++k) tensor.elements.push_back(element_of(Dtype::kFloat32, i + k));
    tensors["layer" + std::to_string(i)] = tensor;
  }
  save_in(store, tensors, dice);
  auto read = std::make_shared<std::atomic<std::uint64_t>>(0);
  FaultyStore counting(
      store, [](const auto&, const auto&) { return std::nullopt; },
      [read](const std::string& path, std::uint64_t, std::size_t length) -> std::optional<Error> {
        if (path.ends_with(".distcp")) *read += length;
        return std::nullopt;
      });
  auto source = open_checkpoint(counting.read_folder("/ck").value());
  REQUIRE(source.has_value());
  const std::vector<Step> steps{DropStep{{"layer0"}}};
  const TargetState all = taken(*source, steps);
  std::uint64_t kept = 0;
  for (const TargetEntry& entry : all.tensors) {
    for (ChunkId chunk : (*source)->chunks(entry.as_saved))
      kept += static_cast<std::uint64_t>((*source)->item(chunk)->length);
  }
  REQUIRE(kept > 40'000);
  for (int workers : {1, 2, 5}) {
    CAPTURE(workers);
    const std::string out = "/out" + std::to_string(workers);
    *read = 0;
    auto ended = run_on_threads(workers, {}, [&](Transport& transport) -> Status {
      TransportTeam team(transport, std::chrono::seconds(60), "here");
      TargetRun run;
      run.form = {&dcp_format(), 0, out};
      run.steps = {to_text(steps.front())};
      run.plan = encode_stored_plan(told(steps, fingerprint(**source)));
      run.team = &team;
      auto made = make_target(store, all, run, nullptr);
      if (!made) return tl::unexpected<Error>(std::move(made).error());
      return {};
    });
    for (const Status& one : ended) {
      if (!one) FAIL(one.error().message);
    }
    CHECK(*read == kept);
    auto proof = verify_repair(*open_in(store, out), nullptr, *source);
    REQUIRE(proof.has_value());
    CHECK(proof->outcome == VerifyReport::Outcome::kProved);
  }
}
