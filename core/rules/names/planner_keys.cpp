// Checks that the two names of every entry in the metadata, flat and as path, agree.
#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_set>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

std::string joined(std::span<const PathPart> path) {
  std::string out;
  for (const PathPart& part : path) {
    if (!out.empty()) out += '.';
    if (const auto* key = std::get_if<std::string>(&part)) {
      out += *key;
    } else {
      out += std::to_string(std::get<std::int64_t>(part));
    }
  }
  return out;
}

struct DifferingPaths {
  std::vector<std::string> without, other;
  std::vector<std::string> other_paths;
  // Names whose path differs from the name, grouped by path: shared paths involve one of them.
  std::map<std::vector<PathPart>, std::vector<std::string>> by_path;
};

void compare_path(std::string_view fqn, std::span<const PathPart> path, DifferingPaths& out) {
  if (path.empty()) {
    out.without.emplace_back(fqn);
  } else if (std::string text = joined(path); text != fqn) {
    out.other.emplace_back(fqn);
    out.other_paths.push_back(std::string(fqn) + ": " + text);
    out.by_path[{path.begin(), path.end()}].emplace_back(fqn);
  }
}

// The entry with this path as both name and path.
std::optional<std::string> own_entry(const Checkpoint& checkpoint,
                                     const std::vector<PathPart>& path) {
  std::string fqn = joined(path);
  auto is_there = [&](std::span<const PathPart> recorded) {
    return std::equal(path.begin(), path.end(), recorded.begin(), recorded.end());
  };
  if (auto tensor = checkpoint.find(fqn); tensor && is_there(checkpoint.path(*tensor))) return fqn;
  for (std::size_t i = 0; i < checkpoint.objects().size(); ++i) {
    if (checkpoint.objects()[i].fqn == fqn && is_there(checkpoint.object_path(i))) return fqn;
  }
  return std::nullopt;
}

// When several entries map to one path, a nested state dict keeps only the last.
void report_shared_paths(const Checkpoint& checkpoint, const DifferingPaths& found,
                         std::vector<Finding>& findings) {
  constexpr std::size_t kMaxLooks = 4096;  // each lookup scans all non-tensor entries
  Finding finding;
  std::vector<std::string> paths;
  std::size_t looks = 0;
  for (const auto& [path, names] : found.by_path) {
    std::vector<std::string> all = names;
    if (looks++ < kMaxLooks) {
      if (auto own = own_entry(checkpoint, path)) all.push_back(std::move(*own));
    }
    if (all.size() < 2) continue;
    paths.push_back(joined(path) + ": " + short_list_text(all));
    for (const std::string& fqn : all) finding.subjects.push_back(fqn);
  }
  if (paths.empty()) return;
  finding.rule = "planner-keys";
  finding.severity = Severity::kWarning;
  finding.cause = "planner_data gives one path to " + plural(finding.subjects.size(), "name") +
                  " (" + paths.front() + (paths.size() == 1 ? "" : ", ...") +
                  "): a tool that rebuilds the nested state dict from the metadata, such as "
                  "torch's converter, keeps only one of them.";
  finding.evidence = {{"paths", capped(paths)}, {"path_count", count_of(paths.size())}};
  findings.push_back(std::move(finding));
}

// torch records the path of every entry that any rank wants to save, so these should have been
// saved.
void report_unsaved(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& checkpoint = facts.checkpoint;
  if (checkpoint.provenance().only_in_planner.empty()) return;
  std::unordered_set<std::string_view> objects;
  for (const NonTensorEntry& object : checkpoint.objects()) objects.insert(object.fqn);
  Finding finding;
  // With an index per rank, a rank may name entries of other ranks.
  for (const std::string& fqn : each_of(checkpoint.provenance().only_in_planner, facts)) {
    if (!checkpoint.find(fqn) && !objects.contains(fqn)) finding.subjects.push_back(fqn);
  }
  if (finding.subjects.empty()) return;
  finding.rule = "planner-keys";
  finding.severity = Severity::kWarning;
  const bool one = finding.subjects.size() == 1;
  finding.cause = "planner_data names " + plural(finding.subjects.size(), "entry") + " (" +
                  short_list_text(finding.subjects) +
                  ") that the checkpoint does not hold: " + (one ? "it was" : "they were") +
                  " in the state dict of a rank, and either the metadata lost " +
                  (one ? "it" : "them") + " or torch never saved " + (one ? "it." : "them.");
  finding.evidence = {{"count", count_of(finding.subjects.size())}};
  findings.push_back(std::move(finding));
}

void find_differing_planner_keys(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& checkpoint = facts.checkpoint;
  if (!checkpoint.provenance().has_planner_data) return;
  report_unsaved(facts, findings);
  DifferingPaths found;
  std::size_t entries = checkpoint.tensor_count() + checkpoint.objects().size();
  for (TensorId tensor : each_tensor(facts))
    compare_path(checkpoint.fqn(tensor), checkpoint.path(tensor), found);
  for (std::size_t i = 0; i < checkpoint.objects().size(); ++i)
    compare_path(checkpoint.objects()[i].fqn, checkpoint.object_path(i), found);
  // Some writers leave an empty dict, without meaning.
  if (found.without.size() == entries) return;
  auto add = [&](std::vector<std::string> subjects, std::string what,
                 std::vector<std::string> examples) {
    if (subjects.empty()) return;
    Finding finding{.rule = "planner-keys", .severity = Severity::kInfo};
    finding.cause = plural(subjects.size(), "name") + " " + what + " (" +
                    short_list_text(subjects) +
                    "): a tool that rebuilds the nested state dict from the metadata puts " +
                    (subjects.size() == 1 ? "it" : "them") + " at a different path.";
    finding.evidence = {{"count", count_of(subjects.size())}, {"names", count_of(entries)}};
    if (!examples.empty()) finding.evidence.emplace_back("paths", capped(examples));
    finding.subjects = std::move(subjects);
    findings.push_back(std::move(finding));
  };
  report_shared_paths(checkpoint, found, findings);
  add(std::move(found.without), "of the metadata has no path in planner_data", {});
  add(std::move(found.other), "of planner_data does not match its path",
      std::move(found.other_paths));
}

}  // namespace

const Rule kPlannerKeys = {
    .id = "planner-keys",
    .depth = Depth::kMetadata,
    .title = "Tensor names and paths in the metadata differ",
    .teaches =
        "Next to the flat names (model.layers.0.weight) the metadata keeps the path of keys and "
        "indices from which torch made each name. Loading into a model uses the names alone; "
        "torch's converters and tools that rebuild a nested state dict use the paths. If a name "
        "was edited but not its path, or the reverse, the two kinds of tools see different "
        "checkpoints.",
    .lesson = {.drawing = R"(
  name                     path in planner_data
  layers.0.weight          layers / 0 / weight            the same
  layers.1.weight          module / layers / 1 / weight   another place
)",
               .remedy = "Loading into a model is not affected; a tool that rebuilds the nested "
                         "state dict uses the path."},
    .run = find_differing_planner_keys,
};

}  // namespace shw
