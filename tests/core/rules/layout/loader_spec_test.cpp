// Optimizer states of single ranks with a spec of the loading layout, not of the saving one: the
// chunks of the parameters tell where each state belongs.
#include <doctest/doctest.h>

#include <set>

#include "core/model/state_names.h"
#include "core/rules/layouts.h"

using namespace shw;
using namespace shw::test;

namespace {

SpecEntry entry_on(const char* mesh, Extents shape, std::vector<Placement> placements) {
  SpecEntry entry;
  entry.mesh = parse_mesh(mesh).value();
  entry.shape = std::move(shape);
  entry.placements = std::move(placements);
  return entry;
}

// `saved`: how parameters were cut; their states are plain tensors.
SavedModel momentum(const std::vector<Placement>& saved) {
  std::vector<SavedTensor> tensors;
  for (int layer = 0; layer < 6; ++layer) {
    const std::string name = "layers." + std::to_string(layer) + ".weight";
    const SpecEntry entry = entry_on("dp=2,tp=2", {8 * (1 + layer % 3), 4}, saved);
    tensors.push_back(honest("model." + name, entry));
    tensors.push_back(plain_state("optim.state." + name + ".momentum_buffer", entry));
  }
  return save(tensors, 4);
}

void give_layout(SavedModel& model, const char* mesh, const std::vector<Placement>& placements) {
  for (auto& [fqn, entry] : model.spec->entries) entry = entry_on(mesh, entry.shape, placements);
}

}  // namespace

TEST_CASE("states of one rank are where the chunks of their parameters say under a loader's spec") {
  SavedModel model = momentum({strided(0, 2), sharded(0)});
  struct Loader {
    const char* mesh;
    std::vector<Placement> placements;
  };
  for (const Loader& loader : {Loader{"dp=4", {sharded(0)}}, Loader{"dp=4", {sharded(1)}},
                               Loader{"dp=2,tp=2", {sharded(0), sharded(0)}}}) {
    give_layout(model, loader.mesh, loader.placements);
    std::set<std::uint32_t> writers;
    std::size_t placed = 0;
    for (const Finding& finding : look(model, true)) {
      if (finding.rule != "local-saved-as-global") continue;
      for (const Diagnosis& diagnosis : finding.diagnoses) {
        const auto& part = std::get<PartlyLost>(diagnosis);
        const Checkpoint& c = *model.checkpoint;
        REQUIRE(part.retained_chunks.size() == 1);
        const RetainedChunk& retained_chunk = part.retained_chunks.front();
        CHECK(Box{retained_chunk.at, retained_chunk.source.sizes} ==
              model.truth.at(std::string(c.fqn(part.tensor))).front());
        writers.insert(c.writer(retained_chunk.chunk).value());
        ++placed;
      }
    }
    CHECK(placed == 6);
    CHECK(writers.size() > 1);
  }
}

TEST_CASE("a spec of strided shards that the chunks contradict leaves states undecided") {
  // Recorded left to right although the spec is strided: the parameters may be wrong themselves, so
  // their chunks tell the place only after they are repaired.
  SavedModel model = momentum({sharded(0), sharded(0)});
  give_layout(model, "dp=2,tp=2", {strided(0, 2), sharded(0)});
  const Checkpoint& c = *model.checkpoint;
  for (const Finding& finding : look(model, true)) {
    if (finding.rule != "local-saved-as-global") continue;
    for (const Diagnosis& diagnosis : finding.diagnoses) {
      const auto& part = std::get<PartlyLost>(diagnosis);
      for (const RetainedChunk& retained_chunk : part.retained_chunks) {
        auto held =
            box_of_nested_splits(part.expected, parse_mesh("dp=2,tp=2").value(),
                                 {strided(0, 2), sharded(0)}, *c.writer(retained_chunk.chunk));
        CHECK(held == Box{retained_chunk.at, retained_chunk.source.sizes});
      }
    }
  }
}

TEST_CASE("a spec of a smaller model gives states of a whole parameter no shape of its own") {
  SavedModel model = momentum({strided(0, 2), sharded(0)});
  for (auto& [fqn, entry] : model.spec->entries) --entry.shape[0];
  std::size_t told = 0;
  for (const Finding& finding : look(model, true)) {
    if (finding.rule != "local-saved-as-global") continue;
    told += finding.subjects.size();
    CHECK(finding.diagnoses.empty());
    CHECK_FALSE(finding.remedy.has_value());
  }
  CHECK(told == 6);
}

TEST_CASE("states of one rank are found under the names of one optimizer of several") {
  for (const char* prefix : {"optim.1.state.", "muon.state.", "optimizers.0.inner.state."}) {
    CAPTURE(std::string(prefix));
    const SpecEntry entry = entry_on("dp=4", {8, 4}, {sharded(0)});
    std::vector<SavedTensor> tensors;
    for (const char* name : {"layers.0.weight", "layers.1.weight"}) {
      tensors.push_back(honest(std::string("model.") + name, entry));
      tensors.push_back(plain_state(prefix + std::string(name) + ".momentum_buffer", entry));
    }
    std::vector<Finding> findings = look(save(tensors, 4), false);
    REQUIRE_FALSE(findings.empty());
    CHECK(findings.front().rule == "local-saved-as-global");
    CHECK(findings.front().subjects.size() == 2);
  }
  // A weight may be called state.
  CHECK_FALSE(parse_state_fqn("model.layers.state.0.weight").has_value());
  CHECK_FALSE(parse_state_fqn("mamba.state.proj.weight").has_value());
}
