#include "core/rules/layout/mesh_contradicted.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "core/base/words.h"
#include "core/facts/facts.h"
#include "core/facts/layout/derived_layout.h"
#include "core/facts/layout/rank_orders.h"
#include "core/mesh/infer.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

Finding mesh_finding(const Mesh& mesh, std::int64_t ranks, std::string cause) {
  Finding finding{.rule = "mesh-contradicted", .severity = Severity::kWarning};
  finding.cause = std::move(cause);
  finding.evidence = {{"mesh", to_text(mesh)},
                      {"ranks_of_the_mesh", mesh.size()},
                      {"ranks_that_wrote", ranks},
                      {"where", std::string("request")}};
  return finding;
}

void add_subjects(const Checkpoint& c, const std::vector<TensorId>& tensors, Finding& finding) {
  for (TensorId tensor : tensors) finding.subjects.emplace_back(c.fqn(tensor));
}

std::string sizes_text(const CheckInput& input, std::int64_t ranks) {
  return plural(static_cast<std::uint64_t>(ranks), "rank") + " wrote this, and the mesh (" +
         to_text(*input.mesh) + ") has " +
         human_count(static_cast<std::uint64_t>(input.mesh->size()));
}

// More ranks wrote than the mesh has, so it did not save the checkpoint.
std::optional<Finding> mesh_too_small_finding(const CheckInput& input) {
  if (input.ranks <= input.mesh->size()) return std::nullopt;
  return mesh_finding(*input.mesh, input.ranks,
                      sizes_text(input, input.ranks) +
                          ": this mesh did not save the checkpoint, so it was not used.");
}

// Subject and verb of a sentence: "w is", "w and 3 more are".
std::string subject_text(const Checkpoint& c, const std::vector<TensorId>& tensors) {
  std::string first(c.fqn(tensors.front()));
  if (tensors.size() == 1) return first + " lies";
  return first + " and " + plural(tensors.size() - 1, "other tensor") + " lie";
}

// The consequence if the spec's rank order is not the saver's.
const char* consequence_text(bool is_used) {
  return is_used
             ? "the spec lists the mesh axes in a different order from the save, so the order that "
               "these tensors show was used. Correct the order in the spec, or name it (--mesh)."
             : "the spec lists the mesh axes in a different order from the save, so its mesh was "
               "not used. Name the mesh of the save (--mesh).";
}

std::string rank_order_text(const Checkpoint& c, const RankOrderMismatch& found,
                            const Mesh& instead) {
  return fmt::format(
      "{} as the spec says, to the box, where ranks are counted over {}, and elsewhere where they "
      "are counted over {}: ",
      subject_text(c, found.tensors), to_text(instead), to_text(found.believed));
}

Finding rank_order_finding(const CheckInput& input, const RankOrderMismatch& found,
                           const Mesh& instead, std::string_view what_became) {
  Finding finding =
      mesh_finding(found.believed, input.ranks,
                   rank_order_text(input.checkpoint, found, instead) + std::string(what_became));
  finding.evidence.emplace_back("mesh_of_the_spec", to_text(found.of_spec));
  finding.evidence.emplace_back("lies_so_on", to_text(instead));
  add_subjects(input.checkpoint, found.tensors, finding);
  return finding;
}

Finding given_mesh_finding(const CheckInput& input, const RankOrderMismatch& found) {
  return rank_order_finding(
      input, found, found.instead,
      found.is_contradicted_by_others
          ? "other tensors show the opposite order, so neither of the two was used."
          : "the given mesh (--mesh) did not save this checkpoint, so it was not used.");
}

// A spec may describe the loading mesh.
Finding spec_mesh_finding(const CheckInput& input, const RankOrderMismatch& found, bool is_used) {
  Finding finding = rank_order_finding(input, found, is_used ? *found.proved : found.instead,
                                       consequence_text(is_used));
  finding.severity = Severity::kInfo;
  return finding;
}

Finding conflicting_orders_finding(const CheckInput& input, const Mesh& of_spec) {
  Finding finding = mesh_finding(
      *input.mesh, input.ranks,
      fmt::format("The given mesh ({}) and the spec's mesh ({}) have the same axes in "
                  "different orders, and no tensor shows which is right: neither was used to "
                  "decide which rank held what. Give both in the axis order of the run that saved.",
                  to_text(*input.mesh), to_text(of_spec)));
  finding.severity = Severity::kInfo;
  finding.evidence.emplace_back("mesh_of_the_spec", to_text(of_spec));
  return finding;
}

// Tests the user's mesh with the spec's placements of each tensor.
void check_mesh_with_spec(CheckInput& input, std::vector<Finding>& findings) {
  RankOrders orders = find_rank_orders(input);
  const Mesh given = *input.mesh;
  bool is_out = false;
  for (const RankOrderMismatch& found : orders.contradicted) {
    if (found.believed != given) continue;
    findings.push_back(given_mesh_finding(input, found));
    is_out = true;
    if (found.is_contradicted_by_others) input.meshes_in_other_rank_order.push_back(found.of_spec);
  }
  for (const Mesh& of_spec : orders.undecided) {
    if (!is_out) findings.push_back(conflicting_orders_finding(input, of_spec));
    is_out = true;
    input.meshes_in_other_rank_order.push_back(of_spec);
  }
  if (is_out) input.mesh = nullptr;
}

// Tests the spec's own meshes, if the user's mesh does not replace them.
void check_spec_orders(CheckInput& input, bool is_named, std::vector<Finding>& findings) {
  const auto contradicted = find_rank_orders(input).contradicted;
  const bool is_proved = !is_named && contradicted.size() == 1 && contradicted.front().proved;
  for (const RankOrderMismatch& found : contradicted) {
    if (input.mesh != nullptr && found.believed == *input.mesh) continue;
    findings.push_back(spec_mesh_finding(input, found, is_proved));
    if (!is_proved) input.meshes_in_other_rank_order.push_back(found.of_spec);
  }
  if (is_proved) input.proved_mesh = std::make_shared<const Mesh>(*contradicted.front().proved);
}

bool explains_all(const MeshGuess& guess) {
  return guess.looked_at != 0 && guess.unexplained.empty();
}

// Another mesh that predicts every chunk while the user's predicts none. If the user's predicts
// some, it may have saved all: flat over several axes, as dense weights next to experts, or in an
// order without placements.
const MeshGuess* mesh_that_explains_all(const std::vector<MeshGuess>& guesses) {
  if (guesses.front().explained != 0) return nullptr;
  auto other = std::find_if(guesses.begin() + 1, guesses.end(), explains_all);
  return other == guesses.end() ? nullptr : &*other;
}

// A mesh with no more axes than the user's; one with more would be the same mesh, factorised.
std::optional<Mesh> mesh_without_more_axes(const std::vector<MeshGuess>& guesses) {
  auto other = std::find_if(guesses.begin() + 1, guesses.end(), [&](const MeshGuess& guess) {
    return explains_all(guess) && guess.mesh.axes.size() <= guesses.front().mesh.axes.size();
  });
  return other == guesses.end() ? std::nullopt : std::optional(other->mesh);
}

// The mesh as text, with both numbers if it has more ranks than wrote.
std::string named_mesh(const CheckInput& input) {
  std::int64_t ranks = count_ranks(input, {});
  if (input.mesh->size() > ranks) return sizes_text(input, ranks) + ": it";
  return "The mesh (" + to_text(*input.mesh) + ")";
}

std::string fit_text(const MeshFit& fit) {
  return " predicts the chunks of " + human_count(static_cast<std::uint64_t>(fit.explained)) +
         " of " + plural(static_cast<std::uint64_t>(fit.looked_at), "tensor") +
         " that several ranks cut: ";
}

// Without a spec: the boxes of the writers must match some placements.
void check_mesh_with_chunks(CheckInput& input, std::vector<Finding>& findings) {
  auto guesses = infer_meshes(input.checkpoint, {}, input.mesh, input.progress);
  const MeshGuess& given = guesses.front();
  MeshFit fit{given.explained, given.looked_at, given.against, mesh_without_more_axes(guesses)};
  const MeshGuess* better = mesh_that_explains_all(guesses);
  if (better == nullptr) {
    input.mesh_fit = std::move(fit);
    return;
  }
  Finding finding =
      mesh_finding(*input.mesh, input.ranks,
                   named_mesh(input) + fit_text(fit) + "another mesh saved this (" +
                       to_text(better->mesh) + " predicts all of them), so it was not used.");
  finding.evidence.emplace_back("not_explained", fit.against);
  finding.evidence.emplace_back("predicts_all", to_text(better->mesh));
  add_subjects(input.checkpoint, given.unexplained, finding);
  findings.push_back(std::move(finding));
  input.mesh = nullptr;
}

// Ranks that wrote data or created a file.
std::set<std::int64_t> writers_of(const Checkpoint& checkpoint) {
  std::set<std::int64_t> writers;
  for (const FileRow& file : checkpoint.files()) {
    if (file.rank) writers.insert(*file.rank);
  }
  for (ChunkId chunk : checkpoint.chunks()) {
    if (auto writer = checkpoint.writer(chunk)) writers.insert(*writer);
  }
  return writers;
}

// True if the writers are the lowest of each group of replicas (dedup_save_to_lowest_rank): the
// front ranks of some axes, completely. Copies are along axes, and boxes match.
bool are_lowest_of_replicas(const Facts& facts) {
  const Mesh& mesh = *facts.mesh;
  if (facts.mesh_fit->explained != facts.mesh_fit->looked_at) return false;
  const std::set<std::int64_t> writers = writers_of(facts.checkpoint);
  std::vector<bool> is_copied(mesh.axes.size(), true);
  for (std::int64_t rank : writers) {
    const auto at = mesh.coordinates(rank);
    for (std::size_t axis = 0; axis < at.size(); ++axis)
      is_copied[axis] = is_copied[axis] && at[axis] == 0;
  }
  std::int64_t lowest = 1;
  for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis)
    lowest *= is_copied[axis] ? 1 : mesh.axes[axis].size;
  return lowest == static_cast<std::int64_t>(writers.size());
}

// Reports weak contradictions as infos.
void find_mesh_contradictions(const Facts& facts, std::vector<Finding>& findings) {
  if (facts.mesh == nullptr || !facts.mesh_fit) return;
  std::int64_t ranks = count_ranks(facts, {});
  auto report_doubt = [&](std::string cause) {
    findings.push_back(mesh_finding(*facts.mesh, ranks, std::move(cause)));
    findings.back().severity = Severity::kInfo;
  };
  if (ranks == 0)
    return report_doubt(
        "The mesh was not used: this checkpoint does not record which rank wrote what.");
  // A found cause explains deviating chunks.
  bool caused = std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.severity > Severity::kInfo;
  });
  const MeshFit& fit = *facts.mesh_fit;
  bool is_large = facts.mesh->size() > ranks;
  const bool is_doubted =
      fit.explained * 2 < fit.looked_at || (fit.instead && fit.explained < fit.looked_at);
  if (is_doubted && !caused) {
    // Even the right mesh does not explain orders without placements.
    report_doubt(named_mesh(facts) + fit_text(fit) +
                 "the checkpoint was saved on another mesh, or with a rank order that no placement "
                 "describes.");
    findings.back().evidence.emplace_back("not_explained", fit.against);
    if (fit.instead) findings.back().evidence.emplace_back("predicts_all", to_text(*fit.instead));
  } else if (is_large && !are_lowest_of_replicas(facts)) {
    report_doubt(sizes_text(facts, ranks) +
                 ": the other ranks wrote nothing, or the mesh is wrong.");
  }
}

}  // namespace

void resolve_mesh(CheckInput& input, std::vector<Finding>& findings) {
  const bool is_named = input.mesh != nullptr;
  if (input.mesh != nullptr) {
    if (auto refused = mesh_too_small_finding(input)) {
      findings.push_back(std::move(*refused));
      input.mesh = nullptr;
    }
  }
  if (input.mesh != nullptr) check_mesh_with_spec(input, findings);
  if (input.mesh != nullptr) check_mesh_with_chunks(input, findings);
  check_spec_orders(input, is_named, findings);
}

const Rule kMeshContradicted = {
    .id = "mesh-contradicted",
    .depth = Depth::kMetadata,
    .title = "The given mesh does not match the checkpoint",
    .teaches =
        "The device mesh determines which rank holds which shard; if no file records it, give it "
        "with --mesh dp=4,tp=2. This mesh has fewer ranks than wrote the checkpoint, or it "
        "predicts different chunks from those saved, or the spec's placements match only with its "
        "axes in a different order. A mesh that the spec contradicts for one tensor is not used "
        "for any: a repair with it would restore the wrong ranks' rows. The tensors named here "
        "show which order fits; the desktop's mesh panel shows which meshes would fit. If the "
        "spec's axis order is wrong and all tensors agree on another one, that one is used.",
    .lesson = {.drawing = R"(
  --mesh dp=4              │ 0 │ 1 │ 2 │ 3 │
  files                    │ 0 │ 1 │ 2 │ 3 │ 4 │ 5 │ ... │ 63 │

  a matrix that tp 2 cuts  │ upper half     │ lower half     │
  by --mesh tp=2,dp=2        ranks 0 and 1    ranks 2 and 3
  written by                 rank 2           rank 1           so dp=2,tp=2
)",
               .remedy = "The checkpoint needs no change. Give the mesh of the run that saved it, "
                         "or omit --mesh."},
    .outcome = RunOutcome::kNone,
    .run = find_mesh_contradictions,
};

}  // namespace shw
