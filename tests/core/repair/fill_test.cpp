// Values that fill lost elements, and how the loss is reported.
#include <doctest/doctest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "core/repair/against_source.h"
#include "core/repair/make_checkpoint.h"
#include "core/repair/plan/plan.h"
#include "core/repair/run/apply.h"
#include "core/repair/run/lost.h"
#include "core/report/listing.h"
#include "core/temporary_folder.h"

using namespace shw;

namespace {

const char* const kFqn = "optimizer.state.0.exp_avg";

MadeTensor rows(const std::string& fqn, std::int64_t first, std::int64_t count,
                std::int64_t plus_value) {
  Extents shape{count, 3};
  Values values;
  for (std::int64_t i = 0; i < count * 3; ++i) values.push_back(first * 3 + i + plus_value);
  return {fqn, shape, {{whole(shape), shape, values, 1}}};
}

// Rows 2 and 3 of 6 survive; the rest is lost.
struct Broken {
  TemporaryFolder folder;
  std::shared_ptr<const Checkpoint> checkpoint;
  CheckReport report;
  Broken() {
    write_checkpoint(folder / "bad", {rows(kFqn, 2, 2, 0), rows("w", 0, 2, 7)});
    checkpoint = opened(folder / "bad");
    TensorId tensor = *checkpoint->find(kFqn);
    Finding finding;
    finding.rule = "local-saved-as-global";
    finding.subjects = {kFqn};
    finding.diagnoses = {PartlyLost{
        tensor, {6, 3}, {{checkpoint->chunks(tensor)[0], Box{{0, 0}, {2, 3}}, {2, 0}}}, ""}};
    report.findings = {finding};
  }
  Plan plan(FillChoice choice, const std::string& source = "") {
    PlanOptions options;
    options.fill = choice;
    if (!source.empty()) options.fill_source = opened(source);
    auto made = make_plan(*checkpoint, report, options);
    REQUIRE(made.has_value());
    REQUIRE(made->tensors.size() == 1);
    return std::move(*made);
  }
  std::string repaired(const Plan& plan, const std::string& name) {
    auto result = apply_plan(*checkpoint, plan, {folder / name, false});
    if (!result) FAIL(result.error().message);
    CHECK_FALSE(result->lossless);
    return result->output;
  }
};

// The expected values: elements that survived, otherwise the fill.
Values expected(const Values& fill) {
  Values values = fill;
  for (std::size_t i = 6; i < 12; ++i) values[i] = static_cast<std::int64_t>(i);
  return values;
}

Values filling() {
  Values values;
  for (std::int64_t i = 0; i < 18; ++i) values.push_back(i + 100);
  return values;
}

}  // namespace

TEST_CASE("what is lost is filled with zeros, or from another checkpoint, as the person says") {
  Broken broken;
  write_checkpoint(broken.folder / "other", {rows(std::string("module.") + kFqn, 0, 6, 100)});
  std::string zero = broken.repaired(broken.plan(FillChoice::kZero), "zero");
  CHECK(values_of(*opened(zero), kFqn) == expected(Values(18, 0)));

  Plan plan = broken.plan(FillChoice::kReference, broken.folder / "other");
  CHECK(plan.tensors[0].fill == Fill::kReference);
  CHECK(plan.tensors[0].lost_elements == 12);
  CHECK_FALSE(plan.lossless);
  std::string from = broken.repaired(plan, "from");
  CHECK(values_of(*opened(from), kFqn) == expected(filling()));
  auto verified = verified_against(from, *broken.checkpoint);
  REQUIRE(verified.has_value());
  CHECK(verified->outcome == VerifyReport::Outcome::kProved);
  CHECK(verified->lost == 12);
}

TEST_CASE("a plan that fills from another checkpoint survives being written down") {
  Broken broken;
  write_checkpoint(broken.folder / "other", {rows(kFqn, 0, 6, 100)});
  std::string json = plan_to_json(*broken.checkpoint,
                                  broken.plan(FillChoice::kReference, broken.folder / "other"));
  auto read = plan_from_json(*broken.checkpoint, json, "plan.json");
  if (!read) FAIL(read.error().message);
  CHECK(values_of(*opened(broken.repaired(*read, "out")), kFqn) == expected(filling()));

  // Another checkpoint is in that folder now.
  std::filesystem::remove_all(broken.folder / "other");
  write_checkpoint(broken.folder / "other", {rows(kFqn, 0, 6, 100), rows("more", 0, 1, 0)});
  auto refused = plan_from_json(*broken.checkpoint, json, "plan.json");
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().kind == ErrorKind::kUsage);
}

TEST_CASE("a checkpoint that cannot fill fills nothing: another shape, a hole, another name") {
  Broken broken;
  write_checkpoint(broken.folder / "shape", {rows(kFqn, 0, 5, 100)});
  MadeTensor hole = rows(kFqn, 0, 4, 100);
  hole.shape = {6, 3};
  write_checkpoint(broken.folder / "hole", {hole});
  write_checkpoint(broken.folder / "name", {rows("else", 0, 6, 100)});
  for (const char* source : {"shape", "hole", "name"}) {
    CAPTURE(source);
    CHECK(broken.plan(FillChoice::kReference, broken.folder / source).tensors[0].fill ==
          Fill::kZero);
  }
}

TEST_CASE("lost.json lists every lost box, and kept and lost make up the total") {
  Broken broken;
  std::string out = broken.repaired(broken.plan(FillChoice::kZero), "out");
  auto json = nlohmann::json::parse(contents(out + "/lost.json"), nullptr, false);
  REQUIRE(json.is_object());
  CHECK(json["tensors"].size() == 1);
  const auto& entry = json["tensors"][kFqn];
  CHECK(entry["fill"] == "zero");
  CHECK(entry["total"] == 18);
  CHECK(entry["kept"].get<int>() + entry["lost"].get<int>() == entry["total"].get<int>());
  CHECK(json["kept"].get<int>() + json["lost"].get<int>() == json["total"].get<int>());
  // Marks every element of every box once, and none that survived.
  std::vector<int> marks(18, 0);
  for (const auto& box : entry["lost_boxes"]) {
    auto offsets = box["offsets"].get<Extents>();
    each(box["sizes"].get<Extents>(), [&](const Extents& at) {
      ++marks[flat(plus(offsets, at), {6, 3})];
    });
  }
  for (std::size_t i = 0; i < marks.size(); ++i) CHECK(marks[i] == (i < 6 || i >= 12 ? 1 : 0));
}

TEST_CASE("a repair that loses nothing leaves no lost.json and has nothing to say about loss") {
  Broken broken;
  TensorId tensor = *broken.checkpoint->find("w");
  broken.report.findings[0].subjects = {"w"};
  broken.report.findings[0].diagnoses = {BlocksPermuted{tensor, 0, 1, {1, 0}}};
  Plan plan = broken.plan(FillChoice::kDefault);
  CHECK(lost_to_text(*broken.checkpoint, plan).empty());
  auto result = apply_plan(*broken.checkpoint, plan, {broken.folder / "out", false});
  REQUIRE(result.has_value());
  CHECK(result->lossless);
  CHECK_FALSE(std::filesystem::exists(broken.folder / "out/lost.json"));
}

TEST_CASE("the terminal is told which elements are lost and what is there") {
  Broken broken;
  write_checkpoint(broken.folder / "other", {rows(kFqn, 0, 6, 100)});
  std::string zero = lost_to_text(*broken.checkpoint, broken.plan(FillChoice::kZero));
  CHECK(zero.find("12 of 18 elements") != std::string::npos);
  CHECK(zero.find("[0:2, 0:3] [4:6, 0:3]") != std::string::npos);
  CHECK(zero.find("filled with zeros") != std::string::npos);
  std::string from = lost_to_text(*broken.checkpoint,
                                  broken.plan(FillChoice::kReference, broken.folder / "other"));
  CHECK(from.find(broken.folder / "other") != std::string::npos);
}
