#include "core/rules/layout/mesh_contradicted.h"

#include <algorithm>

#include "core/base/words.h"
#include "core/facts/derived_layout.h"
#include "core/facts/facts.h"
#include "core/facts/spec_layout.h"
#include "core/mesh/infer.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

Finding mesh_finding(const CheckInput& input, std::int64_t ranks, std::string cause) {
  Finding finding;
  finding.rule = "mesh-contradicted";
  finding.severity = Severity::kWarning;
  finding.cause = std::move(cause);
  finding.evidence = {{"mesh", to_text(*input.mesh)},
                      {"ranks of the mesh", input.mesh->size()},
                      {"ranks that wrote", ranks},
                      {"where", std::string("request")}};
  return finding;
}

std::string sizes_text(const CheckInput& input, std::int64_t ranks) {
  return plural(static_cast<std::uint64_t>(ranks), "rank") + " wrote this, and the mesh (" +
         to_text(*input.mesh) + ") has " +
         human_count(static_cast<std::uint64_t>(input.mesh->size()));
}

// A mesh of another shape, with no more axes than the person's, that predicts every tile: with more
// axes it would be the same mesh, taken apart.
const MeshGuess* better_guess(const std::vector<MeshGuess>& guesses) {
  for (std::size_t i = 1; i < guesses.size(); ++i) {
    if (guesses[i].explained == guesses[i].looked_at &&
        guesses[i].mesh.axes.size() <= guesses[0].mesh.axes.size())
      return &guesses[i];
  }
  return nullptr;
}

void find_mesh_contradictions(const Facts& facts, std::vector<Finding>& findings) {
  if (facts.mesh == nullptr) return;
  std::int64_t ranks = ranks_seen(facts, {});
  if (ranks == 0) {
    findings.push_back(mesh_finding(facts, 0,
                                    "The mesh was not used: nothing in this checkpoint says which "
                                    "rank wrote what."));
    findings.back().severity = Severity::kInfo;
    return;
  }
  // A cause that was found already says why tiles do not lie as the mesh would have them.
  bool caused = std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.severity > Severity::kInfo;
  });
  auto guesses = infer_meshes(facts.checkpoint, {}, facts.mesh, facts.progress);
  const MeshGuess& given = guesses.front();
  const MeshGuess* better = better_guess(guesses);
  bool contradicted =
      given.explained * 2 < given.looked_at || (better && given.explained < given.looked_at);
  if (contradicted && !caused) {
    std::string cause = (facts.mesh->size() > ranks ? sizes_text(facts, ranks) + ": it"
                                                    : "The mesh (" + to_text(*facts.mesh) + ")") +
                        " predicts the tiles of " +
                        human_count(static_cast<std::uint64_t>(given.explained)) + " of " +
                        plural(static_cast<std::uint64_t>(given.looked_at), "tensor") +
                        " that several ranks cut: another mesh saved this, or in an order that no "
                        "placement says.";
    findings.push_back(mesh_finding(facts, ranks, std::move(cause)));
    findings.back().evidence.emplace_back("not explained", given.against);
    // Tiles in an order that no placement says are those of the true mesh too.
    bool another_does = std::any_of(guesses.begin() + 1, guesses.end(), [](const MeshGuess& other) {
      return other.explained == other.looked_at;
    });
    if (given.explained != 0 || !another_does) findings.back().severity = Severity::kInfo;
    if (better) findings.back().evidence.emplace_back("predicts all", to_text(better->mesh));
  } else if (facts.mesh->size() > ranks) {
    findings.push_back(mesh_finding(
        facts, ranks,
        sizes_text(facts, ranks) + ": the other ranks wrote nothing, or it is another mesh."));
    findings.back().severity = Severity::kInfo;
  }
}

}  // namespace

std::optional<Finding> mesh_too_small(const CheckInput& input) {
  if (input.mesh == nullptr) return std::nullopt;
  std::int64_t ranks = input.ranks;
  if (ranks <= input.mesh->size()) return std::nullopt;
  return mesh_finding(input, ranks,
                      sizes_text(input, ranks) +
                          ": it is not the mesh that saved this checkpoint, so it was not used.");
}

const Rule kMeshContradicted = {
    .id = "mesh-contradicted",
    .depth = Depth::kMetadata,
    .title = "The mesh that was named did not save this",
    .teaches =
        "Which rank holds which part follows from the device mesh, and where no file says it, a "
        "person can (--mesh dp=4,tp=2). This mesh has fewer ranks than wrote the checkpoint, or it "
        "predicts other tiles than those that lie there. A mesh that is too small is not used; one "
        "that predicts other tiles is, so what follows from it is in doubt. The desktop's mesh "
        "panel and the writers of the tiles show which meshes would fit.",
    .lesson = {.drawing = R"(
  --mesh dp=4              │ 0 │ 1 │ 2 │ 3 │
  files                    │ 0 │ 1 │ 2 │ 3 │ 4 │ 5 │ ... │ 63 │
)",
               .remedy = "Nothing has to be done to the checkpoint. Name the mesh of the run that "
                         "saved it, or leave --mesh out."},
    .outcome = RunOutcome::kNone,
    .run = find_mesh_contradictions,
};

}  // namespace shw
