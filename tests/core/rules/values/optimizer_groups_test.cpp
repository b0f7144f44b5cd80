// Impossible steps and parameter groups (N16), and healthy ones that look similar.
#include "core/rules/values/optimizer_groups_support.h"

#include <fmt/core.h>

#include <limits>

#include "core/base/words.h"
#include "core/facts/states/optimizer_steps.h"
#include "core/repair/against_source.h"
#include "core/repair/plan/plan.h"
#include "core/repair/run/apply.h"
#include "core/temporary_folder.h"

using namespace shw;
using namespace shw::test;

namespace {

struct Mended {
  std::shared_ptr<const Checkpoint> checkpoint;
  Plan plan;
};

// Checks, plans, writes the plan and reads it again, repairs and verifies.
Mended mended(const std::shared_ptr<const Checkpoint>& broken, const std::string& out,
              std::shared_ptr<const Checkpoint> reference = nullptr) {
  CheckOptions options{Depth::kData, nullptr, std::nullopt};
  options.reference = std::move(reference);
  auto report = check(*broken, options);
  REQUIRE(report.has_value());
  auto plan = make_plan(*broken, *report, {});
  REQUIRE(plan.has_value());
  CHECK(plan->undecided.empty());
  auto read = plan_from_json(*broken, plan_to_json(*broken, *plan), "plan.json");
  if (!read) FAIL(read.error().message);
  CHECK(read->entries.size() == plan->entries.size());
  CHECK(read->lossless == plan->lossless);
  auto repaired = apply_plan(*broken, *read, {out, false});
  if (!repaired) FAIL(repaired.error().message);
  CHECK(repaired->lossless == plan->lossless);
  auto proof = verified_against(out, *broken);
  REQUIRE(proof.has_value());
  CHECK_MESSAGE(proof->outcome == VerifyReport::Outcome::kProved, short_list_text(proof->reasons));
  auto again = open_checkpoint(out);
  REQUIRE(again.has_value());
  auto report_again = check(**again, options);
  REQUIRE(report_again.has_value());
  // Findings about filled elements remain, and no others.
  for (const Finding& finding : report_again->findings)
    CHECK_MESSAGE((finding.severity == Severity::kInfo || finding.rule == "filled-elements"),
                  finding.rule << ": " << finding.cause);
  return {*again, std::move(*plan)};
}

std::string entry(const Checkpoint& checkpoint, const std::string& fqn) {
  for (std::size_t i = 0; i < checkpoint.objects().size(); ++i) {
    if (checkpoint.objects()[i].fqn != fqn) continue;
    auto value = read_plain_value(checkpoint, i, 1 << 20);
    if (!value) FAIL(value.error().message);
    return to_text(*value);
  }
  FAIL("no entry " << fqn);
  return {};
}

}  // namespace

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
    return check_step(mean, square, step, betas);
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
  // For any gradients: a healthy pair is never contradicted by its own step.
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
  Mended after = mended(broken, folder / "out");
  REQUIRE(after.plan.tensors.size() == 1);
  CHECK(after.plan.tensors[0].lost_elements == 1);
  CHECK_FALSE(after.plan.lossless);
  auto step =
      read_tensor(*after.checkpoint, *after.checkpoint->find("optimizer.state.l2.weight.step"));
  REQUIRE(step.has_value());
  CHECK(step->bytes == as_dtype({100}, Dtype::kFloat32));
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
    Mended after = mended(broken, folder / ("out" + name));
    CHECK(after.plan.tensors.empty());
    CHECK(after.plan.entries.size() == 1);
    CHECK_FALSE(after.plan.lossless);
    CHECK(entry(*after.checkpoint, "optimizer.param_groups.1.step") == "100");
    CHECK(entry(*after.checkpoint, "optimizer.param_groups.1.weight_decay") == "0");
  }
}

TEST_CASE(
    "a step that went back next to others that did not is wrong, an older checkpoint is not") {
  TemporaryFolder folder;
  auto model = [](int steps, const std::string& second) {
    MadeModel out;
    for (int i = 0; i < 2; ++i) {
      // With scaled half precision moments prove nothing.
      for (const char* kind : {"exp_avg", "exp_avg_sq"})
        out.add("optimizer.state.l" + std::to_string(i) + ".weight." + kind, Dtype::kFloat16,
                {8, 8}, distinct(64));
    }
    group(out, 0, {"l0.weight"}, 0.1, pickled_int(steps));
    group(out, 1, {"l1.weight"}, 0.0, second);
    return out;
  };
  auto earlier = made(folder / "earlier", model(50, pickled_int(50)));
  auto later = made(folder / "later", model(100, pickled_int(1)));
  auto unsure = found_in(*later, "optimizer-groups");
  REQUIRE(unsure.size() == 1);
  CHECK(unsure[0].severity == Severity::kInfo);
  auto sure = found_in(*later, "optimizer-groups", Depth::kHeaders, earlier);
  REQUIRE(sure.size() == 1);
  CHECK(sure[0].severity == Severity::kWarning);
  CHECK(evidence<std::vector<std::string>>(sure[0], "contradicted_by").front() ==
        "the reference, which has 50 there");
  CHECK(entry(*mended(later, folder / "out", earlier).checkpoint,
              "optimizer.param_groups.1.step") == "100");
  // The group was there and is younger: 40 steps, then 90.
  auto young = made(folder / "young", model(50, pickled_int(40)));
  auto grown_up = made(folder / "grown", model(100, pickled_int(90)));
  CHECK(found_in(*grown_up, "optimizer-groups", Depth::kHeaders, young).empty());
  CHECK(found_in(*young, "optimizer-groups", Depth::kHeaders, grown_up).empty());
}

TEST_CASE("numbers in the lists and names in the states leave a low step undecided") {
  TemporaryFolder folder;
  MadeModel model = grown(4, 100, false);
  for (int g = 0; g < 2; ++g) {
    std::string before = "optimizer.param_groups." + std::to_string(g) + ".";
    model.entries.push_back(
        {before + "params", pickled_list({pickled_int(2 * g), pickled_int(2 * g + 1)})});
    model.entries.push_back({before + "step", pickled_int(g == 0 ? 100 : 1)});
  }
  auto findings = found_in(*made(folder / "a", model), "optimizer-groups");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].severity == Severity::kInfo);
}

TEST_CASE("steps that are not equal are left to the person, with what to do") {
  TemporaryFolder folder;
  MadeModel model = grown(3, 100);
  Moments fewer = trained(64, 60, 0.9, 0.95, 99);
  model.pair("late.weight", {8, 8}, fewer.mean, fewer.square);
  model.step("late.weight", 60);
  set_step(model, "l2.weight", 1);
  auto findings = found_in(*made(folder / "a", model), "optimizer-groups");
  REQUIRE(findings.size() == 1);
  CHECK_FALSE(findings[0].remedy.has_value());
  CHECK(findings[0].diagnoses.empty());
  CHECK(evidence<std::string>(findings[0], "what_to_do").starts_with("no safe remedy"));
}

TEST_CASE("a step that is not a count of updates is wrong whatever the moments say") {
  constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
  TemporaryFolder folder;
  for (double step : {kNothing, std::numeric_limits<double>::infinity(), -3.0}) {
    CAPTURE(step);
    TemporaryFolder one;
    MadeModel model = grown(4, 100);
    set_step(model, "l2.weight", step);
    auto broken = made(one / "broken", model);
    auto findings = found_in(*broken, "optimizer-groups");
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].severity == Severity::kWarning);
    CHECK(findings[0].subjects == std::vector<std::string>{"optimizer.state.l2.weight.step"});
    CHECK(findings[0].remedy.has_value());
    auto step_after = mended(broken, one / "out").checkpoint;
    auto values = read_tensor(*step_after, *step_after->find("optimizer.state.l2.weight.step"));
    REQUIRE(values.has_value());
    CHECK(values->bytes == as_dtype({100}, Dtype::kFloat32));
  }
  MadeModel none = grown(2, 100);
  for (const char* key : {"l0.weight", "l1.weight"}) set_step(none, key, kNothing);
  auto findings = found_in(*made(folder / "none", none), "optimizer-groups");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].severity == Severity::kWarning);
  CHECK_FALSE(findings[0].remedy.has_value());
}

TEST_CASE("a step far ahead of most is remarked on, and decided by a reference") {
  TemporaryFolder folder;
  auto earlier = made(folder / "earlier", grown(5, 90));
  MadeModel model = grown(5, 100);
  set_step(model, "l3.weight", 1e6);
  auto later = made(folder / "later", model);
  auto findings = found_in(*later, "optimizer-groups");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].severity == Severity::kInfo);
  CHECK(findings[0].subjects == std::vector<std::string>{"optimizer.state.l3.weight.step"});
  CHECK(evidence<double>(findings[0], "step_of_most") == 100);
  auto sure = found_in(*later, "optimizer-groups", Depth::kHeaders, earlier);
  REQUIRE(sure.size() == 1);
  CHECK(sure[0].severity == Severity::kWarning);
  auto after = mended(later, folder / "out", earlier).checkpoint;
  auto step = read_tensor(*after, *after->find("optimizer.state.l3.weight.step"));
  REQUIRE(step.has_value());
  CHECK(step->bytes == as_dtype({100}, Dtype::kFloat32));
  // With half here and half there, neither value is the common one.
  MadeModel halves = grown(4, 100);
  for (const char* key : {"l0.weight", "l1.weight"}) set_step(halves, key, 1e6);
  CHECK(found_in(*made(folder / "halves", halves), "optimizer-groups").empty());
}

TEST_CASE("groups in another order than the reference's are put into its order, losslessly") {
  TemporaryFolder folder;
  MadeModel right = grown(3, 20), turned = right;
  group(right, 0, {"l0.weight", "l1.weight"}, 0.1);
  group(right, 1, {"l2.weight"}, 0.0);
  group(turned, 0, {"l2.weight"}, 0.0);
  group(turned, 1, {"l0.weight", "l1.weight"}, 0.1);
  auto reference = made(folder / "right", right);
  auto broken = made(folder / "turned", turned);
  CHECK(found_in(*reference, "optimizer-groups", Depth::kHeaders, reference).empty());
  CHECK(found_in(*broken, "optimizer-groups").empty());
  auto findings = found_in(*broken, "optimizer-groups", Depth::kHeaders, reference);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].severity == Severity::kWarning);
  CHECK(findings[0].remedy->lossless);
  Mended after = mended(broken, folder / "out", reference);
  CHECK(after.plan.lossless);
  CHECK(after.plan.entries.size() == 6);
  for (const char* kind : {"0.params", "0.weight_decay", "1.params", "1.weight_decay"}) {
    std::string fqn = std::string("optimizer.param_groups.") + kind;
    CHECK(entry(*after.checkpoint, fqn) == entry(*reference, fqn));
  }

  // Repaired in place and undone: only .metadata changes.
  std::string before = contents(folder / "turned/.metadata");
  CheckOptions options{Depth::kData, nullptr, std::nullopt};
  options.reference = reference;
  auto report = check(*broken, options);
  auto plan = make_plan(*broken, *report, {});
  REQUIRE(apply_plan(*broken, *plan, {"", true}).has_value());
  CHECK(contents(folder / "turned/.metadata") != before);
  CHECK(verify_repair(folder / "turned")->outcome == VerifyReport::Outcome::kProved);
  REQUIRE(undo_repair(folder / "turned").has_value());
  CHECK(contents(folder / "turned/.metadata") == before);

  // Settings without their parameters may have been moved on purpose, so there is no remedy.
  MadeModel swapped = grown(3, 20);
  group(swapped, 0, {"l0.weight", "l1.weight"}, 0.0);
  group(swapped, 1, {"l2.weight"}, 0.1);
  auto unsure =
      found_in(*made(folder / "swapped", swapped), "optimizer-groups", Depth::kHeaders, reference);
  REQUIRE(unsure.size() == 1);
  CHECK_FALSE(unsure[0].remedy.has_value());
}

TEST_CASE("a plan of entries that was bent is refused") {
  TemporaryFolder folder;
  MadeModel model = grown(4, 100, false);
  group(model, 0, {"l0.weight", "l1.weight"}, 0.1, pickled_int(100));
  group(model, 1, {"l2.weight", "l3.weight"}, 0.0, pickled_int(1));
  auto broken = made(folder / "a", model);
  auto report = check(*broken, CheckOptions{Depth::kData, nullptr, std::nullopt});
  auto plan = make_plan(*broken, *report, {});
  REQUIRE(plan->entries.size() == 1);
  std::string json = plan_to_json(*broken, *plan);
  std::string now = "\"item_of\": " + std::to_string(plan->entries[0].item_of);
  for (const char* wrong : {"\"item_of\": 99", "\"item_of\": -1", "\"item_of\": \"x\""}) {
    std::string bent = json;
    std::size_t at = bent.find(now);
    REQUIRE(at != std::string::npos);
    bent.replace(at, now.size(), wrong);
    CHECK_FALSE(plan_from_json(*broken, bent, "plan.json").has_value());
  }
}

TEST_CASE("healthy optimizers that look odd raise nothing above info") {
  TemporaryFolder folder;
  auto quiet = [&](const std::string& name, const MadeModel& model) {
    CAPTURE(name);
    for (const Finding& finding : found_in(*made(folder / name, model), "optimizer-groups"))
      CHECK(finding.severity == Severity::kInfo);
  };
  MadeModel added = grown(3, 100);  // one parameter was unfrozen one step before the save
  Moments fresh = trained(64, 1, 0.9, 0.95, 77);
  added.pair("new.weight", {8, 8}, fresh.mean, fresh.square);
  added.step("new.weight", 1);
  quiet("added", added);

  MadeModel up = grown(4, 100);  // numbers that are from no optimizer
  for (int i = 0; i < 4; ++i) set_step(up, "l" + std::to_string(i) + ".weight", i);
  quiet("up", up);

  MadeModel few = grown(3, 100);  // an expert that got few tokens
  Moments some = trained(64, 5, 0.9, 0.95, 78);
  few.pair("expert.weight", {8, 8}, some.mean, some.square);
  few.step("expert.weight", 5);
  quiet("few", few);

  MadeModel frozen = grown(3, 100);  // listed, without a state
  group(frozen, 0, {"l0.weight", "l1.weight", "l2.weight", "frozen.weight"}, 0.1);
  quiet("frozen", frozen);

  MadeModel empty = grown(2, 100, false);  // a group without parameters is still at step 1
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

  MadeModel bases = grown(4, 100);  // SOAP keeps a list of matrices next to the moments
  group(bases, 0, {"l0.weight", "l1.weight", "l2.weight", "l3.weight"}, 0.1);
  bases.add("optimizer.state.l1.weight.Q.0", Dtype::kFloat32, {8, 8}, distinct(64));
  quiet("bases", bases);

  MadeModel halves = grown(3, 100);  // moments that cannot be checked
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
  CHECK(evidence<std::vector<std::string>>(twice[0], "listed_twice") ==
        std::vector<std::string>{"l1.weight"});

  MadeModel orphan = grown(4, 100), stages = orphan;
  group(orphan, 0, {"l0.weight", "l1.weight", "l2.weight"}, 0.1);
  auto none = found_in(*made(folder / "orphan", orphan), "optimizer-groups");
  REQUIRE(none.size() == 1);
  CHECK(none[0].severity == Severity::kWarning);
  // Two pipeline stages with the groups of one.
  group(stages, 0, {"l0.weight", "l1.weight"}, 0.1);
  auto half = found_in(*made(folder / "stages", stages), "optimizer-groups");
  REQUIRE(half.size() == 1);
  CHECK(half[0].severity == Severity::kInfo);

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
  // Names in the lists and numbers in the states: two forms, no contradiction.
  holes.entries[0].pickled = pickled_list({pickled_text("a"), pickled_text("b")});
  CHECK(found_in(*made(folder / "spelling", holes), "optimizer-groups").empty());
}

TEST_CASE("a step in a dtype that cannot hold every count is reported") {
  TemporaryFolder folder;
  const auto with_steps = [](Dtype dtype, double step) {
    MadeModel model = grown(3, 100, false);
    for (int i = 0; i < 3; ++i)
      model.add(fmt::format("optimizer.state.l{}.weight.step", i), dtype, {}, {step});
    return model;
  };
  auto coarse =
      found_in(*made(folder / "coarse", with_steps(Dtype::kBfloat16, 9984)), "optimizer-groups");
  REQUIRE(coarse.size() == 1);
  CHECK(coarse[0].severity == Severity::kWarning);
  CHECK(coarse[0].subjects.size() == 3);
  CHECK(coarse[0].cause.find("at 9984 its numbers are 64 apart") != std::string::npos);
  for (const auto& [dtype, step] :
       {std::pair(Dtype::kBfloat16, 100.0), {Dtype::kFloat16, 1024.0}, {Dtype::kFloat32, 9984.0}})
    CHECK(found_in(*made(folder / fmt::format("{}", step), with_steps(dtype, step)),
                   "optimizer-groups")
              .empty());
}
