// N10 repaired: names change, bytes do not.
#include "core/repair/plan/check_names.h"

#include <doctest/doctest.h>

#include <limits>

#include "core/repair/against_source.h"
#include "core/repair/make_checkpoint.h"
#include "core/repair/plan/plan.h"
#include "core/repair/run/apply.h"
#include "core/temporary_folder.h"

using namespace shw;

namespace {

void write_names(const std::string& path, const std::vector<std::string>& names) {
  std::vector<MadeTensor> tensors;
  for (std::size_t i = 0; i < names.size(); ++i) {
    Values values = counting({4, 3});
    for (std::int64_t& value : values) value += static_cast<std::int64_t>(100 * i);
    tensors.push_back({names[i], {4, 3}, {}});
    for (std::int64_t row : {0, 2}) {
      Box box{{row, 0}, {2, 3}};
      tensors.back().chunks.push_back(
          {box, box.sizes, cut_out(values, {4, 3}, box), static_cast<std::uint32_t>(row / 2)});
    }
  }
  write_checkpoint(path, tensors);
}

Plan plan_of(const Checkpoint& checkpoint,
             const std::vector<std::pair<std::string, std::string>>& renames) {
  CheckReport report;
  Finding finding;
  finding.rule = "layers-renumbered";
  for (const auto& [from, to] : renames) {
    finding.subjects.push_back(from);
    finding.diagnoses.emplace_back(Renamed{*checkpoint.find(from), to, {}});
  }
  report.findings = {finding};
  auto plan = make_plan(checkpoint, report, {});
  REQUIRE(plan.has_value());
  return *plan;
}

std::map<std::string, Values> all_values(const std::string& path) {
  auto checkpoint = opened(path);
  std::map<std::string, Values> out;
  for (std::uint32_t t = 0; t < checkpoint->tensor_count(); ++t) {
    std::string fqn(checkpoint->fqn(TensorId{t}));
    out[fqn] = values_of(*checkpoint, fqn);
  }
  return out;
}

}  // namespace

TEST_CASE("plan: evidence that is not finite comes back from JSON") {
  TemporaryFolder folder;
  write_names(folder / "ckpt", {"a.w", "b.w"});
  auto checkpoint = opened(folder / "ckpt");
  Plan plan = plan_of(*checkpoint, {{"a.w", "c.w"}});
  Finding finding;
  finding.rule = "value-statistics";
  finding.evidence = {{"worst", std::numeric_limits<double>::infinity()},
                      {"mean", std::numeric_limits<double>::quiet_NaN()},
                      {"share", 0.5}};
  plan.undecided.push_back(finding);
  const std::string text = plan_to_json(*checkpoint, plan);
  CHECK(text.find("null") == std::string::npos);
  auto read = plan_from_json(*checkpoint, text, "plan.json");
  REQUIRE_MESSAGE(read.has_value(), read.error().message);
  CHECK(plan_to_json(*checkpoint, *read) == text);
}

TEST_CASE("names move on and change places, bytes stay, in a new directory and in place") {
  for (bool in_place : {false, true}) {
    TemporaryFolder folder;
    write_names(folder / "ckpt", {"layers.0.w", "layers.1.w", "norm.w"});
    auto before = all_values(folder / "ckpt");
    auto checkpoint = opened(folder / "ckpt");
    Plan plan = plan_of(*checkpoint, {{"layers.0.w", "layers.1.w"}, {"layers.1.w", "layers.0.w"}});
    CHECK(plan.lossless);
    CHECK(plan.undecided.empty());
    REQUIRE(plan.operations.size() == 1);
    CHECK(plan.operations[0].kind == OperationKind::kRename);
    CHECK(plan.operations[0].bytes_moved == 0);
    CHECK(plan.operations[0].text.find("layers.0.w -> layers.1.w") != std::string::npos);
    auto read = plan_from_json(*checkpoint, plan_to_json(*checkpoint, plan), "plan.json");
    REQUIRE(read.has_value());
    CHECK(plan_to_json(*checkpoint, *read) == plan_to_json(*checkpoint, plan));
    ApplyOptions options;
    options.in_place = in_place;
    if (!in_place) options.out = folder / "out";
    auto result = apply_plan(*checkpoint, *read, options);
    if (!result) FAIL(result.error().message);
    auto after = all_values(result->output);
    CHECK(after["layers.1.w"] == before["layers.0.w"]);
    CHECK(after["layers.0.w"] == before["layers.1.w"]);
    CHECK(after["norm.w"] == before["norm.w"]);
    auto certificate = certificate_from_json(contents(result->certificate), "certificate.json");
    REQUIRE(certificate.has_value());
    for (const TensorCertificate& tensor : certificate->tensors) {
      CHECK(tensor.before == tensor.after);
      CHECK_FALSE(tensor.after.empty());
      CHECK(tensor.lost == 0);
      CHECK(tensor.renamed_from.empty() == (tensor.fqn == "norm.w"));
    }
    auto verified = verified_against(result->output, *checkpoint);
    REQUIRE(verified.has_value());
    CHECK(verified->outcome == VerifyReport::Outcome::kProved);
    if (!in_place) continue;
    REQUIRE(undo_repair(folder / "ckpt"));
    CHECK(all_values(folder / "ckpt") == before);
  }
}

TEST_CASE("a name that is there and stays is never given to another: nothing is renamed at all") {
  TemporaryFolder folder;
  write_names(folder / "ckpt", {"layers.0.w", "layers.1.w", "layers.2.w"});
  auto checkpoint = opened(folder / "ckpt");
  for (const auto& renames : {std::vector<std::pair<std::string, std::string>>{
                                  {"layers.0.w", "layers.3.w"}, {"layers.1.w", "layers.2.w"}},
                              {{"layers.0.w", "layers.5.w"}, {"layers.1.w", "layers.5.w"}},
                              {{"layers.0.w", ""}}}) {
    Plan plan = plan_of(*checkpoint, renames);
    CHECK(plan.empty());
    CHECK(plan.tensors.empty());
    REQUIRE(plan.undecided.size() == 1);
    CHECK(plan.undecided[0].evidence.back().first == "not_repaired_because");
  }
  // A name from a plan that a user edited.
  Plan plan = plan_of(*checkpoint, {{"layers.2.w", "layers.3.w"}});
  std::string json = plan_to_json(*checkpoint, plan);
  auto at = json.find("\"new_fqn\": \"layers.3.w\"");
  REQUIRE(at != std::string::npos);
  json.replace(at, 23, "\"new_fqn\": \"layers.1.w\"");
  CHECK_FALSE(plan_from_json(*checkpoint, json, "plan.json").has_value());
}

TEST_CASE("an earlier finding's repair of a tensor is kept, and gets the name besides") {
  TemporaryFolder folder;
  write_names(folder / "ckpt", {"layers.0.w", "layers.1.w"});
  auto checkpoint = opened(folder / "ckpt");
  CheckReport report;
  Finding blocks, names;
  blocks.rule = "blocks-permuted";
  blocks.subjects = {"layers.0.w"};
  blocks.diagnoses = {BlocksPermuted{TensorId{0}, 0, 2, {1, 0}}};
  names.rule = "layers-renumbered";
  names.subjects = {"layers.0.w"};
  names.diagnoses = {Renamed{TensorId{0}, "layers.7.w", {}}};
  report.findings = {blocks, names};
  auto plan = make_plan(*checkpoint, report, {});
  REQUIRE(plan.has_value());
  REQUIRE(plan->operations.size() == 2);
  CHECK(plan->operations[0].kind == OperationKind::kPermuteBlocks);
  CHECK(plan->operations[1].kind == OperationKind::kRename);
  auto result = apply_plan(*checkpoint, *plan, {folder / "out"});
  if (!result) FAIL(result.error().message);
  auto after = opened(folder / "out");
  CHECK(values_of(*after, "layers.7.w") == Values{6, 7, 8, 9, 10, 11, 0, 1, 2, 3, 4, 5});
  CHECK(after->provenance().reordered == std::vector<std::string>{"layers.7.w"});
}

TEST_CASE("a path in the state dict is cut for the new name as it was for the old one") {
  using Path = std::vector<PathPart>;
  Path path{std::string("model"), std::string("layers.0.mlp.w")};
  auto after = renamed_path(path, "model.layers.0.mlp.w", "model.layers.12.mlp.w");
  REQUIRE(after.has_value());
  CHECK(*after == Path{std::string("model"), std::string("layers.12.mlp.w")});
  Path indexed{std::string("layers"), std::int64_t{0}, std::string("w")};
  after = renamed_path(indexed, "layers.0.w", "layers.3.w");
  REQUIRE(after.has_value());
  CHECK(*after == Path{std::string("layers"), std::int64_t{3}, std::string("w")});
  Path wrapped{std::string("optim"), std::string("_orig_mod.a.w"), std::string("exp_avg")};
  after = renamed_path(wrapped, "optim._orig_mod.a.w.exp_avg", "optim.a.w.exp_avg");
  REQUIRE(after.has_value());
  CHECK(*after == Path{std::string("optim"), std::string("a.w"), std::string("exp_avg")});
  CHECK(renamed_path(Path{}, "a.0", "a.1")->empty());
  CHECK_FALSE(renamed_path(path, "another.name", "model.layers.1.mlp.w").has_value());
  CHECK_FALSE(renamed_path(indexed, "layers.0.w", "layers.three.w").has_value());
  CHECK_FALSE(renamed_path(indexed, "layers.0.w", "layers.3.w.more").has_value());
  CHECK_FALSE(renamed_path(indexed, "layers.0.w", "layers.3").has_value());
}
