// Steps and parameter groups that cannot be (N16), and all that looks like them and is healthy.
#include "core/rules/optimizer_groups_support.h"

#include "core/repair/apply.h"
#include "core/repair/plan.h"
#include "core/rules/optimizer_steps.h"
#include "core/temporary_folder.h"

using namespace shw;
using namespace shw::test;

TEST_CASE("settings are read from every spelling that occurs") {
  TemporaryFolder folder;
  MadeModel model = grown(2, 100);
  group(model, 0, {"l0.weight"}, 0.1);
  group(model, 1, {"l1.weight"}, 0.0);
  auto settings = read_optimizer_settings(*made(folder / "a", model));
  REQUIRE(settings.optimizers.size() == 1);
  const SavedOptimizer& optimizer = settings.optimizers[0];
  CHECK(optimizer.prefix == "optimizer.");
  REQUIRE(optimizer.groups.size() == 2);
  CHECK(optimizer.groups[1].params == std::vector<std::string>{"l1.weight"});
  CHECK(optimizer.steps.at("l0.weight").step == 100);
  CHECK(optimizer.steps.at("l0.weight").tensor.has_value());
  CHECK(betas_of(optimizer, "l1.weight")->second == 0.95);

  // torch up to 2.3 keeps the list whole; Megatron-FSDP and a flattened one go by parameter.
  MadeModel old = grown(1, 7, false);
  old.entries = {{"optimizer.param_groups",
                  pickled_list({pickled_dict({{"betas", pickled_pair(0.8, 0.9)},
                                              {"step", pickled_int(7)},
                                              {"params", pickled_list({pickled_int(0)})}})})}};
  auto whole = read_optimizer_settings(*made(folder / "b", old));
  REQUIRE(whole.optimizers.at(0).groups.size() == 1);
  CHECK(whole.optimizers[0].groups[0].step->step == 7);
  CHECK(betas_of(whole.optimizers[0], "0")->first == 0.8);
  for (const char* name : {"param_groups", "param_to_group_meta"}) {
    MadeModel flat = grown(1, 7, false);
    std::string before = std::string("optimizer.") + name + ".module.l0.weight.";
    flat.entries = {{before + "betas", pickled_pair(0.8, 0.9)}, {before + "step", pickled_int(7)}};
    auto read = read_optimizer_settings(*made(folder / name, flat));
    REQUIRE(read.optimizers.at(0).groups.size() == 1);
    CHECK(read.optimizers[0].by_parameter);
    CHECK(read.optimizers[0].groups[0].name == "l0.weight");
    CHECK(read.optimizers[0].groups[0].step->step == 7);
  }
}

TEST_CASE("moments contradict a step that they cannot have after so few updates") {
  Moments one = trained(64, 1, 0.9, 0.95), ten = trained(64, 10, 0.9, 0.95);
  auto judged = [](const Moments& moments, std::optional<double> step,
                   std::optional<Betas> betas = Betas{0.9, 0.95}, Dtype dtype = Dtype::kFloat32) {
    TensorValues mean{dtype, {64}, as_dtype(moments.mean, dtype), 0};
    TensorValues square{dtype, {64}, as_dtype(moments.square, dtype), 0};
    return judge_step(mean, square, step, betas);
  };
  for (Dtype dtype : {Dtype::kFloat32, Dtype::kBfloat16, Dtype::kFloat64}) {
    CAPTURE(name(dtype));
    for (auto betas : {std::optional<Betas>{}, std::optional(Betas{0.9, 0.95})}) {
      CHECK(judged(one, 1, betas, dtype) == StepVerdict::kFits);
      CHECK(judged(ten, 1, betas, dtype) == StepVerdict::kImpossible);
      CHECK(judged(ten, 0, betas, dtype) == StepVerdict::kImpossible);
      CHECK(judged(ten, std::nullopt, betas, dtype) == StepVerdict::kImpossible);
    }
  }
  Moments none{Numbers(64, 0), Numbers(64, 0)};
  CHECK(judged(none, 0) == StepVerdict::kFits);
  CHECK(judged(none, std::nullopt) == StepVerdict::kFits);
  CHECK(judged(none, 1) == StepVerdict::kFits);
  // Whatever the gradients were: no healthy pair is ever contradicted by its own step.
  for (int steps = 1; steps < 40; ++steps) {
    for (std::uint64_t seed = 1; seed < 6; ++seed)
      CHECK(judged(trained(64, steps, 0.9, 0.95, seed), steps) != StepVerdict::kImpossible);
  }
}

TEST_CASE("a step tensor that the moments contradict becomes that of all others") {
  TemporaryFolder folder;
  MadeModel model = grown(4, 100);
  CHECK(found_in(*made(folder / "healthy", model), "optimizer-groups").empty());
  set_step(model, "l2.weight", 1);
  auto broken = made(folder / "broken", model);
  for (Depth depth : {Depth::kHeaders, Depth::kData}) {
    auto findings = found_in(*broken, "optimizer-groups", depth);
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].severity == Severity::kWarning);
    CHECK(findings[0].subjects == std::vector<std::string>{"optimizer.state.l2.weight.step"});
    CHECK(findings[0].remedy->kind == "fill");
    CHECK_FALSE(findings[0].remedy->lossless);
  }
  CheckOptions options{Depth::kData, nullptr, std::nullopt};
  auto report = check(*broken, options);
  REQUIRE(report.has_value());
  auto plan = make_plan(*broken, *report, {});
  REQUIRE(plan.has_value());
  REQUIRE(plan->tensors.size() == 1);
  CHECK(plan->tensors[0].lost_elements == 1);
  auto repaired = apply_plan(*broken, *plan, {folder / "out", false});
  if (!repaired) FAIL(repaired.error().message);
  auto again = open_checkpoint(folder / "out");
  REQUIRE(again.has_value());
  auto step = read_tensor(**again, *(*again)->find("optimizer.state.l2.weight.step"));
  REQUIRE(step.has_value());
  CHECK(step->bytes == as_dtype({100}, Dtype::kFloat32));
  CHECK(found_in(**again, "optimizer-groups").empty());
  auto report_again = check(**again, options);
  CHECK(report_again->verdict == Verdict::kClean);
}

TEST_CASE("a group's step inside an object is found, and null is one too") {
  TemporaryFolder folder;
  for (const std::string& step : {pickled_int(1), kPickledNone, pickled_int(0)}) {
    MadeModel model = grown(4, 100, false);
    group(model, 0, {"l0.weight", "l1.weight"}, 0.1, pickled_int(100));
    group(model, 1, {"l2.weight", "l3.weight"}, 0.0, pickled_int(100));
    static int number = 0;
    std::string name = std::to_string(number++);
    CHECK(found_in(*made(folder / ("healthy" + name), model), "optimizer-groups").empty());
    for (MadeEntry& entry : model.entries) {
      if (entry.fqn == "optimizer.param_groups.1.step") entry.pickled = step;
    }
    auto broken = made(folder / ("broken" + name), model);
    auto findings = found_in(*broken, "optimizer-groups");
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].severity == Severity::kWarning);
    CHECK(findings[0].subjects == std::vector<std::string>{"optimizer.param_groups.1.step"});
  }
}

TEST_CASE("healthy optimizers that look odd raise nothing above info") {
  TemporaryFolder folder;
  auto quiet = [&](const std::string& name, const MadeModel& model) {
    CAPTURE(name);
    for (const Finding& finding : found_in(*made(folder / name, model), "optimizer-groups"))
      CHECK(finding.severity == Severity::kInfo);
  };
  MadeModel added = grown(3, 100);  // unfrozen one step before the save
  Moments fresh = trained(64, 1, 0.9, 0.95, 77);
  added.pair("new.weight", {8, 8}, fresh.mean, fresh.square);
  added.step("new.weight", 1);
  quiet("added", added);

  MadeModel few = grown(3, 100);  // an expert that got few tokens
  Moments some = trained(64, 5, 0.9, 0.95, 78);
  few.pair("expert.weight", {8, 8}, some.mean, some.square);
  few.step("expert.weight", 5);
  quiet("few", few);

  MadeModel frozen = grown(3, 100);  // listed, without a state
  group(frozen, 0, {"l0.weight", "l1.weight", "l2.weight", "frozen.weight"}, 0.1);
  quiet("frozen", frozen);

  MadeModel empty = grown(2, 100, false);  // a group without parameters still says step 1
  group(empty, 0, {"l0.weight", "l1.weight"}, 0.1, pickled_int(100));
  group(empty, 1, {}, 0.0, pickled_int(1));
  quiet("empty", empty);

  MadeModel zeros = grown(3, 100);  // moments that were reset
  zeros.pair("z.weight", {8, 8}, Numbers(64, 0), Numbers(64, 0));
  zeros.step("z.weight", 0);
  quiet("zeros", zeros);

  MadeModel rates = grown(2, 100);  // other settings for each group
  group(rates, 0, {"l0.weight"}, 0.1);
  group(rates, 1, {"l1.weight"}, 0.0);
  quiet("rates", rates);

  MadeModel halves = grown(3, 100);  // moments that cannot be judged
  for (const char* kind : {"exp_avg", "exp_avg_sq"})
    halves.add(std::string("optimizer.state.h.weight.") + kind, Dtype::kFloat16, {8, 8},
               distinct(64));
  halves.step("h.weight", 1);
  quiet("halves", halves);
  CHECK(found_in(*made(folder / "h", halves), "optimizer-groups").size() == 1);
}

TEST_CASE("a parameter in two groups, and states in no group, cannot be") {
  TemporaryFolder folder;
  MadeModel model = grown(3, 100);
  group(model, 0, {"l0.weight", "l1.weight"}, 0.1);
  group(model, 1, {"l1.weight", "l2.weight"}, 0.0);
  auto twice = found_in(*made(folder / "twice", model), "optimizer-groups");
  REQUIRE(twice.size() == 1);
  CHECK(twice[0].severity == Severity::kWarning);
  CHECK(evidence<std::vector<std::string>>(twice[0], "listed twice") ==
        std::vector<std::string>{"l1.weight"});

  MadeModel orphan = grown(3, 100);
  group(orphan, 0, {"l0.weight", "l1.weight"}, 0.1);
  auto none = found_in(*made(folder / "orphan", orphan), "optimizer-groups");
  REQUIRE(none.size() == 1);
  CHECK(none[0].severity == Severity::kWarning);

  MadeModel holes = grown(0, 0);
  for (int i = 0; i < 3; ++i) {
    Moments moments = trained(64, 30, 0.9, 0.95);
    holes.pair(std::to_string(i), {8, 8}, moments.mean, moments.square);
  }
  holes.entries = {{"optimizer.param_groups.0.params",
                    pickled_list({pickled_int(0), pickled_int(1), pickled_int(2)})}};
  CHECK(found_in(*made(folder / "right", holes), "optimizer-groups").empty());
  holes.entries[0].pickled =
      pickled_list({pickled_int(0), pickled_int(1), pickled_int(2), pickled_int(7)});
  auto odd = found_in(*made(folder / "holes", holes), "optimizer-groups");
  REQUIRE(odd.size() == 1);
  CHECK(odd[0].severity == Severity::kInfo);
  // Names in the lists, numbers in the states: two spellings, no contradiction.
  holes.entries[0].pickled = pickled_list({pickled_text("a"), pickled_text("b")});
  CHECK(found_in(*made(folder / "spelling", holes), "optimizer-groups").empty());
}
