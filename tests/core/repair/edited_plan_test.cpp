// Repair plans edited by a user: their text matches their effect, and kept elements belong to the
// tensor.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "core/repair/make_checkpoint.h"
#include "core/repair/plan/plan.h"
#include "core/temporary_folder.h"

using namespace shw;

namespace {

using PlanJson = nlohmann::ordered_json;

// "w" and "x" of [6, 4], each in two tiles of three rows: chunks 0 and 1, and 2 and 3.
void write_pair(const std::string& path) {
  std::vector<MadeTensor> tensors;
  for (const char* fqn : {"w", "x"}) {
    MadeTensor tensor{fqn, {6, 4}, {}};
    for (std::int64_t i = 0; i < 2; ++i) {
      Values values;
      for (std::int64_t k = 0; k < 12; ++k) values.push_back(100 * i + k);
      tensor.chunks.push_back(
          {{{3 * i, 0}, {3, 4}}, {3, 4}, values, static_cast<std::uint32_t>(i)});
    }
    tensors.push_back(std::move(tensor));
  }
  write_checkpoint(path, tensors);
}

struct EditedPlan {
  TemporaryFolder folder;
  std::shared_ptr<const Checkpoint> checkpoint;
  PlanJson json;

  explicit EditedPlan(const std::vector<Diagnosis>& diagnoses) {
    write_pair(folder / "ckpt");
    checkpoint = opened(folder / "ckpt");
    Finding finding;
    finding.rule = "planted";
    for (const Diagnosis& diagnosis : diagnoses)
      finding.subjects.emplace_back(checkpoint->fqn(tensor_of(diagnosis)));
    finding.diagnoses = diagnoses;
    CheckReport report;
    report.findings = {finding};
    auto plan = make_plan(*checkpoint, report, {});
    REQUIRE(plan.has_value());
    json = PlanJson::parse(plan_to_json(*checkpoint, *plan));
  }
  Result<Plan> read() const { return plan_from_json(*checkpoint, json.dump(), "plan.json"); }
};

Diagnosis upside_down(std::uint32_t tensor) {
  return BlocksPermuted{TensorId{tensor}, 0, 1, {5, 4, 3, 2, 1, 0}};
}

Diagnosis half_of(std::uint32_t tensor, std::uint32_t chunk) {
  return PartlyLost{TensorId{tensor}, {6, 4}, {{ChunkId{chunk}, {{0, 0}, {3, 4}}, {0, 0}}}, ""};
}

}  // namespace

TEST_CASE("a plan that nobody edited keeps the words that it has") {
  for (const auto& diagnoses : {std::vector<Diagnosis>{upside_down(0), upside_down(1)},
                                std::vector<Diagnosis>{half_of(0, 0)},
                                std::vector<Diagnosis>{upside_down(0), half_of(1, 2)}}) {
    EditedPlan plan(diagnoses);
    auto read = plan.read();
    REQUIRE(read.has_value());
    CHECK(PlanJson::parse(plan_to_json(*plan.checkpoint, *read)) == plan.json);
  }
}

TEST_CASE("the words of an edited plan are recreated where they do not fit its tensors") {
  EditedPlan plan({upside_down(0), half_of(1, 2)});
  auto check = [&](std::int64_t lost, std::uint64_t moved, std::size_t tensors) {
    auto read = plan.read();
    REQUIRE(read.has_value());
    std::int64_t told_lost = 0;
    std::uint64_t told_moved = 0;
    std::set<std::string> named;
    for (const Operation& operation : read->operations) {
      told_lost += operation.elements_lost;
      told_moved += operation.bytes_moved;
      CHECK(operation.lossless ==
            (operation.kind != OperationKind::kMask && operation.kind != OperationKind::kFill));
      if (operation.kind != OperationKind::kRewriteMetadata)
        named.insert(operation.subjects.begin(), operation.subjects.end());
    }
    CHECK(told_lost == lost);
    CHECK(told_moved == moved);
    CHECK(named.size() == tensors);
    CHECK(read->lossless == (lost == 0));
  };
  check(12, 96, 2);
  const PlanJson whole = plan.json;
  for (PlanJson& operation : plan.json["steps"]) {
    operation["elements_lost"] = 0;
    operation["lossless"] = true;
  }
  check(12, 96, 2);
  plan.json = whole;
  plan.json["steps"][0]["bytes_moved"] = 1;
  check(12, 96, 2);
  plan.json = whole;
  plan.json["target"]["tensors"].erase(1);
  check(0, 96, 1);
  plan.json = whole;
  plan.json["target"]["tensors"].erase(0);
  check(12, 0, 1);
}

TEST_CASE("an edited plan that takes elements of another tensor and loses its own is refused") {
  for (bool both : {false, true}) {
    EditedPlan plan(both ? std::vector<Diagnosis>{upside_down(0), upside_down(1)}
                         : std::vector<Diagnosis>{upside_down(0)});
    // Replaces rows of w by rows of x.
    PlanJson& piece = plan.json["target"]["tensors"][0]["chunks"][0]["pieces"][0];
    piece["chunk"] = piece["chunk"].get<int>() + 2;
    auto read = plan.read();
    REQUIRE_FALSE(read.has_value());
    CHECK(read.error().place.tensor == "w");
    // Exchanging rows between both loses nothing.
    if (!both) continue;
    PlanJson& other = plan.json["target"]["tensors"][1]["chunks"][0]["pieces"][0];
    other["chunk"] = other["chunk"].get<int>() - 2;
    CHECK(plan.read().has_value());
  }
}

TEST_CASE("an edited plan that keeps an element in two places is refused") {
  EditedPlan plan({half_of(0, 0)});
  CHECK(plan.read().has_value());
  PlanJson& tensor = plan.json["target"]["tensors"][0];
  PlanJson& filled = tensor["chunks"][1];
  REQUIRE(filled["offsets"] == PlanJson({3, 0}));
  auto keep_a_row_of = [&](int chunk) {
    filled["pieces"] = PlanJson::array(
        {{{"chunk", chunk}, {"offsets", {1, 0}}, {"sizes", {1, 4}}, {"at", {0, 0}}}});
    tensor["lost"] = PlanJson::array({{{"offsets", {4, 0}}, {"sizes", {2, 4}}}});
    tensor["lost_elements"] = 8;
    return plan.read().has_value();
  };
  CHECK_FALSE(keep_a_row_of(0));
  CHECK(keep_a_row_of(1));
}
