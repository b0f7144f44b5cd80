// P07. Where an axis was dropped, chance (load balancing) decided whose chunk was kept: a tensor
// whose chunks come from several coordinates of that axis is put together from several experts or
// slices. Without a dropped axis the same picture is healthy: replicas share the writing.
#include <algorithm>
#include <set>

#include "core/rules/axis_dropped.h"
#include "core/rules/reports.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

void run(const RuleInput& input, std::vector<Finding>& findings) {
  const Checkpoint& c = input.checkpoint;
  std::vector<std::string> mixed, lines;
  std::set<std::int64_t> across;
  std::string axis;
  for (const DroppedAxis& dropped : dropped_axes(input)) {
    std::set<std::int64_t> own(dropped.coordinates.begin(), dropped.coordinates.end());
    if (own.empty()) continue;
    across.insert(own.begin(), own.end());
    axis = dropped.entry->mesh->axes[dropped.axis].name;
    std::string line = std::string(c.fqn(dropped.tensor)) + ": " + axis;
    for (std::int64_t coordinate : own) line += " " + std::to_string(coordinate);
    if (lines.size() < 16) lines.push_back(std::move(line));
    if (own.size() > 1) mixed.emplace_back(c.fqn(dropped.tensor));
  }
  if (across.size() < 2) return;
  Finding finding;
  finding.rule = "writer-mosaic";
  finding.severity = Severity::kWarning;
  bool inside = !mixed.empty();
  if (inside) {
    finding.subjects = std::move(mixed);
    finding.cause =
        "Chunks of one tensor were written by ranks of several " + axis +
        " coordinates: what is there is put together from different parts of the model.";
  } else {
    for (const DroppedAxis& dropped : dropped_axes(input))
      finding.subjects.emplace_back(c.fqn(dropped.tensor));
    finding.cause = "Different tensors survived from different " + axis +
                    " coordinates: together they are no rank's model.";
  }
  finding.evidence = {{"axis", axis}, {"coordinates that survived", lines}};
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kWriterMosaic = {
    "writer-mosaic", Depth::kMetadata,
    "Chunks of one tensor come from different slices of the model",
    "Where an axis was dropped, load balancing decides chunk by chunk which rank's bytes are "
    "kept. A tensor whose chunks come from several coordinates of that axis is no rank's "
    "tensor: a mixture of experts, or of tensor-parallel slices. The finding beside it (axis- "
    "dropped) says where each chunk belongs.",
    run};

}  // namespace shw
