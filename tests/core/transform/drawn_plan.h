// A random checkpoint, random steps, and the expected result.
#pragma once

#include <doctest/doctest.h>

#include "core/facts/storage/filled.h"
#include "core/formats/items/items.h"
#include "core/formats/table.h"
#include "core/repair/plan/plan.h"
#include "core/repair/plan/plan_fingerprint.h"
#include "core/repair/plan/stored_plan.h"
#include "core/repair/proof/certificate.h"
#include "core/repair/proof/verify.h"
#include "core/repair/run/make_target.h"
#include "core/transform/random_steps.h"

namespace shw::test {

inline const Format& dcp_format() {
  for (const FormatRow& row : formats()) {
    if (row.format->name == "dcp") return *row.format;
  }
  FAIL("there is no DCP");
  return kUnknownFormat;
}

struct DrawnPlan {
  MemoryStore store{};
  PlainCheckpoint wanted;  // after the steps
  std::vector<Step> steps;
};

inline void draw_plan(Dice& dice, bool only_lossless, DrawnPlan& plan) {
  plan.wanted = random_tensors(dice);
  save_in(plan.store, plan.wanted, dice);
  StepDrawer drawer(plan.wanted, dice, only_lossless);
  std::int64_t count = dice.pick(1, 5);
  for (std::int64_t i = 0; i < count; ++i) {
    plan.steps.push_back(drawer.draw());
    std::visit(PlainSteps{plan.wanted}, plan.steps.back());
  }
}

inline std::string told(const std::vector<Step>& steps, const std::string& fingerprint = {}) {
  Plan plan;
  plan.steps = steps;
  plan.fingerprint = fingerprint;
  return plan_to_json(plan);
}

inline TargetState taken(std::shared_ptr<const Checkpoint> checkpoint,
                         const std::vector<Step>& steps) {
  auto all = apply_steps(target_state_of(std::move(checkpoint)), steps);
  if (!all) FAIL(all.error().message << " " << all.error().place.tensor << "\n" << told(steps));
  return std::move(*all);
}

// Runs the whole plan into a folder.
inline TargetRun run_into(const DrawnPlan& plan, const TargetState& all, const std::string& out) {
  TargetRun run;
  run.form = {&dcp_format(), 0, out};
  for (const Step& step : plan.steps) run.steps.push_back(to_text(step));
  run.plan = encode_stored_plan(told(plan.steps, fingerprint(all.source())));
  return run;
}

// Checks that the certificate's counts of lost elements equal those of the reference, tensor by
// tensor.
inline void check_counts(const DrawnPlan& plan, const Checkpoint& result) {
  auto file = result.directory()->open(kCertificateFile);
  REQUIRE(file.has_value());
  auto bytes = read_bytes(**file, 0, (*file)->size());
  REQUIRE(bytes.has_value());
  auto certificate = certificate_from_json(
      {reinterpret_cast<const char*>(bytes->data()), bytes->size()}, kCertificateFile);
  REQUIRE(certificate.has_value());
  REQUIRE(certificate->tensors.size() == plan.wanted.size());
  for (const TensorCertificate& tensor : certificate->tensors) {
    CAPTURE(tensor.fqn);
    const PlainTensor& wanted = plan.wanted.at(tensor.fqn);
    std::int64_t lost = 0, out_of_range = 0;
    for (std::size_t i = 0; i < wanted.elements.size(); ++i) {
      lost += wanted.lost[i];
      out_of_range += !wanted.lost[i] && wanted.out_of_range[i];
    }
    CHECK(tensor.lost == lost);
    CHECK(tensor.out_of_range == out_of_range);
    CHECK(tensor.kept + tensor.lost + tensor.out_of_range == volume(wanted.shape));
  }
}

// The files of a result folder by path, after proving it: with the plan in its certificate and the
// source, and against `wanted`.
inline std::map<std::string, Bytes> proved_files(DrawnPlan& plan, const TargetState& all,
                                                 const std::string& out) {
  auto result = open_in(plan.store, out);
  auto proof = verify_repair(*result, nullptr, all.inputs.front());
  REQUIRE(proof.has_value());
  if (proof->outcome != VerifyReport::Outcome::kProved)
    FAIL(proof->reasons.front() << "\n" << told(plan.steps));
  REQUIRE(proof->against.has_value());
  CHECK(proof->against->compared == proof->kept + proof->lost + proof->out_of_range);
  check_counts(plan, *result);
  for (const auto& [fqn, wanted] : plan.wanted) {
    auto id = result->find(fqn);
    REQUIRE(id.has_value());
    auto values = read_tensor(*result, *id);
    REQUIRE(values.has_value());
    CHECK(values->bytes == bytes_in(wanted, whole(wanted.shape)));
  }
  std::map<std::string, Bytes> files;
  auto entries = result->directory()->list();
  REQUIRE(entries.has_value());
  for (const Entry& entry : *entries) files[entry.path] = *plan.store.get(out + "/" + entry.path);
  return files;
}

}  // namespace shw::test
