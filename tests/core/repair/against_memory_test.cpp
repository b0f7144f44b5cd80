// A proof against a source whose items must be decoded, within a memory limit.
#include <doctest/doctest.h>

#include "core/memory_store.h"
#include "core/put_folder.h"
#include "core/transform/drawn_plan.h"

using namespace shw;

TEST_CASE("a proof against a compressed source is the same with hardly any memory") {
  test::DrawnPlan drawn;
  test::put_folder(drawn.store, SHW_TEST_DATA "/torch-2.14/healthy_zstd/ckpt", "/ck");
  drawn.steps = {ReshardStep{{"*"}, {{{"dp", 3}}}, {{Placement::Kind::kShard, 0, 1}}}};
  const std::shared_ptr<const Checkpoint> source = test::open_in(drawn.store, "/ck");
  const TargetState all = test::taken(source, drawn.steps);
  auto made = make_target(drawn.store, all, test::run_into(drawn, all, "/out"), nullptr);
  if (!made) FAIL(made.error().message);
  auto result = test::open_in(drawn.store, "/out");
  auto usual = verify_repair(*result, nullptr, source);
  REQUIRE(usual.has_value());
  CHECK(usual->outcome == VerifyReport::Outcome::kProved);
  for (std::uint64_t memory : {std::uint64_t{0}, kMinMemory}) {
    auto proof = verify_repair(*result, nullptr, source, nullptr, memory);
    REQUIRE(proof.has_value());
    CHECK(proof->outcome == usual->outcome);
    CHECK(proof->reasons == usual->reasons);
    REQUIRE(proof->against.has_value());
    CHECK(proof->against->compared == usual->against->compared);
  }
}
