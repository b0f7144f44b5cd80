// Expectations from another checkpoint: for which tensors, under which names.
#include <doctest/doctest.h>

#include "core/model/builder.h"
#include "core/repair/make_checkpoint.h"
#include "core/rules/check.h"
#include "core/rules/reference/against_support.h"
#include "core/spec/spec_from_checkpoint.h"
#include "core/temporary_folder.h"

using namespace shw;

TEST_CASE("of what a spec does not name the reference says what it holds") {
  TemporaryFolder folder;
  const Values values = numbers_from(1, 48);
  std::vector<MadeTensor> good = {cut_in_rows("model.a", {8, 6}, values, 4),
                                  cut_in_rows("model.b", {8, 6}, values, 4),
                                  cut_in_rows("model.c", {8, 6}, values, 4)};
  std::vector<MadeTensor> bad = {
      good[0], cut_in_rows("model.b", {4, 6}, numbers_from(1, 24), 2)};  // and c was left out
  write_checkpoint(folder / "good", good);
  write_checkpoint(folder / "bad", bad);
  auto spec = parse_spec(R"({"model.a": {"shape": [8, 6]}})", "spec.json");
  REQUIRE(spec.has_value());
  CheckOptions options;
  options.spec = std::make_shared<Spec>(std::move(*spec));
  options.reference = opened(folder / "good");
  auto report = check(*opened(folder / "bad"), options);
  REQUIRE(report.has_value());
  REQUIRE(first_of(*report, "shape-mismatch") != nullptr);
  CHECK(first_of(*report, "shape-mismatch")->subjects == std::vector<std::string>{"model.b"});
  CHECK(first_of(*report, "unexpected-key") == nullptr);
  CHECK(first_of(*report, "missing-key") == nullptr);  // only a spec knows whether c is missing
}

TEST_CASE("names are matched through wrappers and one replaced first part, never by guess") {
  CheckpointBuilder here, there;
  auto add = [](CheckpointBuilder& builder, const std::string& fqn) {
    builder.add_tensor(fqn, Dtype::kFloat32, Extents{4});
    builder.add_chunk(Extents{0}, Extents{4});
  };
  for (const char* fqn : {"module.a.layers.0.w", "_orig_mod.a.layers.1.w", "backbone.b.norm.w",
                          "backbone.b.layers.2.w", "backbone.head.twin.w"})
    add(here, fqn);
  for (const char* fqn : {"model.a.layers.0.w", "a.layers.1.w", "transformer.b.norm.w",
                          "transformer.b.layers.2.w", "x.twin.w", "y.twin.w", "optim.state.a.step"})
    add(there, fqn);
  auto checkpoint = here.finish(), reference = there.finish();
  NameMap names = match_names(*checkpoint, *reference);
  auto other = [&](std::uint32_t t) {
    return names.in_reference[t] ? std::string(reference->fqn(*names.in_reference[t])) : "";
  };
  CHECK(other(0) == "model.a.layers.0.w");
  CHECK(other(1) == "a.layers.1.w");
  CHECK(other(2) == "transformer.b.norm.w");
  CHECK(other(3) == "transformer.b.layers.2.w");
  CHECK(other(4).empty());
  Spec spec = spec_from_checkpoint(*checkpoint, *reference, names);
  CHECK(spec.find("backbone.b.norm.w") != nullptr);
  CHECK(spec.find("x.twin.w") != nullptr);
  CHECK(spec.find("optim.state.a.step") == nullptr);
}

TEST_CASE("a tensor under another name than its neighbours' is missing, not the same") {
  struct Case {
    const char *here, *there;
  };
  for (auto [here, there] :
       {Case{"optim.state.layers.1.mlp.w.state1_old", "optim.state.layers.1.mlp.w.state1"},
        Case{"model.layers.30.mlp.w", "model.layers.3.mlp.w"},
        Case{"model.layers.1.mlp.old.w", "model.layers.1.mlp.new.w"},
        Case{"renamed.layers.1.mlp.x", "model.layers.1.mlp.x"}}) {
    CAPTURE(here);
    TemporaryFolder folder;
    std::vector<std::string> beside = {"model.layers.0.mlp.w", "model.layers.1.mlp.w",
                                       "optim.state.layers.0.mlp.w.state1"};
    const Values values = counting({4});
    std::vector<MadeTensor> saved, reference;
    for (const std::string& fqn : beside) {
      saved.push_back(cut_in_rows(fqn, {4}, values, 1));
      reference.push_back(saved.back());
    }
    saved.push_back(cut_in_rows(here, {4}, values, 1));
    reference.push_back(cut_in_rows(there, {4}, values, 1));
    write_checkpoint(folder / "saved", saved);
    write_checkpoint(folder / "reference", reference);
    CheckReport report = held_against(folder / "saved", folder / "reference");
    CHECK(report.verdict == Verdict::kFindings);
    const Finding* missing = first_of(report, "missing-key");
    REQUIRE(missing != nullptr);
    CHECK(missing->subjects == std::vector<std::string>{there});
  }
}
