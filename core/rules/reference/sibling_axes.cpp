// A matrix whose last two axes are swapped compared with the same matrix of all other layers.
#include <fmt/core.h>

#include <map>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/facts/names/name_families.h"
#include "core/facts/reference/transposed_constraint.h"
#include "core/rules/explained.h"
#include "core/rules/reference/content_rules.h"
#include "core/rules/reference/transposing_step.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// Autoencoders have as many matrices of one orientation as of the other, so most must agree.
constexpr std::size_t kMinSiblings = 3, kSiblingsForEach = 3;

using ByShape = std::map<Extents, std::vector<TensorId>>;

std::map<std::string, ByShape> families_by_shape(const Facts& facts) {
  const Checkpoint& c = facts.checkpoint;
  std::map<std::string, ByShape> families;
  for (TensorId tensor : each_tensor(facts)) {
    const std::string_view fqn = c.fqn(tensor);
    if (c.shape(tensor).size() < 2 || fqn.starts_with("optim") || members_in(fqn).empty()) continue;
    families[without_numbers(fqn)][copy_of(c.shape(tensor))].push_back(tensor);
  }
  return families;
}

struct TransposedMinority {
  const std::vector<TensorId>* few = nullptr;
  const std::vector<TensorId>* many = nullptr;
};

// The few tensors of one shape, if many others have that shape with its last two axes swapped.
std::optional<TransposedMinority> find_transposed_minority(const ByShape& shapes) {
  if (shapes.size() != 2) return std::nullopt;
  const auto &first = *shapes.begin(), &second = *std::next(shapes.begin());
  if (!differ_by_last_dims_swap(first.first, second.first)) return std::nullopt;
  TransposedMinority found{&first.second, &second.second};
  if (found.few->size() > found.many->size()) std::swap(found.few, found.many);
  const bool is_exception = found.many->size() >= kMinSiblings &&
                            found.many->size() >= kSiblingsForEach * found.few->size();
  return is_exception ? std::optional(found) : std::nullopt;
}

void find_sibling_axes(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  const auto told = explained_by(findings, kConfigShape.id);
  const auto transposed = explained_by(findings, kTransposed.id);
  Finding finding{.rule = "sibling-axes", .severity = Severity::kWarning};
  std::vector<std::string> lines;
  std::vector<TensorId> tensors;
  const auto families = families_by_shape(facts);
  for (const auto& [name, shapes] : each_of(families, facts)) {
    const auto unlike = find_transposed_minority(shapes);
    if (!unlike) continue;
    for (TensorId tensor : *unlike->few) {
      const std::string_view fqn = c.fqn(tensor);
      if (told.contains(fqn) || transposed.contains(fqn)) continue;
      finding.subjects.emplace_back(fqn);
      tensors.push_back(tensor);
      lines.push_back(fmt::format("{} is {}, and {} of its name in other layers are {}", fqn,
                                  to_text(c.shape(tensor)), human_count(unlike->many->size()),
                                  to_text(c.shape(unlike->many->front()))));
    }
  }
  if (lines.empty()) return;
  finding.cause = lines.front();
  if (lines.size() > 1) finding.cause += fmt::format(", and {} more like it", lines.size() - 1);
  finding.cause +=
      ": its last two axes are swapped. It was saved transposed; with --against a good copy repair "
      "can prove it and transpose it back.";
  finding.evidence = {{"matrices", capped(lines)}, {"count", count_of(lines.size())}};
  if (auto step = transposing_step(c, tensors))
    finding.evidence.emplace_back("suggested_step", std::move(*step));
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kSiblingAxes = {
    .id = "sibling-axes",
    .depth = Depth::kMetadata,
    .title = "A matrix is transposed compared with all other layers",
    .teaches =
        "The layers of a model have the same structure, so one matrix whose last two axes are "
        "swapped compared with at least three of the same name was saved transposed: a converter "
        "mixed linear and Conv1D layers, or transposed the wrong one. A loader refuses it with a "
        "size mismatch. If both orientations are equally common, as in an autoencoder, nothing is "
        "reported.",
    .lesson = {.drawing = R"(
  layers.0.mlp.up_proj.weight   [48, 32]
  layers.1.mlp.up_proj.weight   [48, 32]
  layers.2.mlp.up_proj.weight   [32, 48]     transposed
  layers.3.mlp.up_proj.weight   [48, 32]
)",
               .remedy = "`shardwright repair --against REFERENCE` transposes it back if the bytes "
                         "prove it: lossless."},
    .words = {.text = "will not load", .as_warning = "with exchanged axes"},
    .outcome = RunOutcome::kLoadFails,
    .survives_rewriting = true,
    .run = find_sibling_axes,
};

}  // namespace shw
