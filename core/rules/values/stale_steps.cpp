#include "core/rules/values/stale_steps.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

// Least number on each side. torch puts steps into the smallest files, so three lagging steps that
// are exactly those of one file are not frozen parameters.
constexpr std::size_t kEnoughSteps = 3;

struct FileSteps {
  std::set<double> values;
  std::vector<std::string> keys;  // keys of the parameters
};

std::optional<FileId> file_of(const Checkpoint& c, const SavedStep& step) {
  std::optional<ItemPlace> place;
  if (step.tensor && c.chunks(*step.tensor).size() == 1) place = c.item(c.chunks(*step.tensor)[0]);
  if (step.object) place = c.objects()[*step.object].item;
  return place && place->file != FileId::kNone ? std::optional(place->file) : std::nullopt;
}

// True if the moments are in other files: the step's file is unrelated to its parameter.
bool has_moments_elsewhere(const Checkpoint& c, const MomentPair& pair, FileId file) {
  for (ChunkId chunk : c.chunks(pair.mean)) {
    auto place = c.item(chunk);
    if (place && place->file != file) return true;
  }
  return false;
}

}  // namespace

void report_stale_steps(const Facts& facts, const SavedOptimizer& optimizer,
                        const std::vector<MomentPair>& pairs, std::vector<Finding>& findings) {
  const Checkpoint& c = facts.checkpoint;
  std::map<FileId, FileSteps> files;
  for (const auto& [key, step] : optimizer.steps) {
    auto file = file_of(c, step);
    if (!file || !step.step) return;
    files[*file].values.insert(*step.step);
    files[*file].keys.push_back(key);
  }
  std::map<double, std::vector<FileId>> by_step;
  for (const auto& [file, steps] : files) {
    if (steps.values.size() != 1) return;
    by_step[*steps.values.begin()].push_back(file);
  }
  if (by_step.size() != 2) return;
  auto stale = by_step.begin(), rest = std::next(stale);
  if (stale->second.size() > rest->second.size()) std::swap(stale, rest);
  if (stale->second.size() != 1) return;
  const FileId file = stale->second.front();
  const std::vector<std::string>& keys = files.at(file).keys;
  std::size_t others = 0;
  for (FileId other : rest->second) others += files.at(other).keys.size();
  const bool are_counts = by_step.begin()->first >= 1;
  if (keys.size() < kEnoughSteps || others < kEnoughSteps || !are_counts) return;
  std::map<std::string_view, const MomentPair*> by_key;
  for (const MomentPair& pair : pairs) {
    if (pair.prefix == optimizer.prefix) by_key.emplace(pair.key, &pair);
  }
  for (const std::string& key : keys) {
    auto pair = by_key.find(key);
    if (pair == by_key.end() || !has_moments_elsewhere(c, *pair->second, file)) return;
  }
  Finding finding{.rule = std::string(kOptimizerGroups.id), .severity = Severity::kWarning};
  finding.subjects.push_back(c.file(file).path);
  finding.cause = fmt::format(
      "{} in {} have step {}, but those in the other files {}, though the moments of these "
      "parameters are sharded over other files too: the files come from two different steps of the "
      "run.",
      plural(keys.size(), "optimizer step"), c.file(file).path, stale->first, rest->first);
  finding.evidence = {{"parameters", capped(keys)},
                      {"count", count_of(keys.size())},
                      {"step_in_this_file", stale->first},
                      {"step_in_the_others", rest->first},
                      {"steps_in_the_others", count_of(others)}};
  findings.push_back(std::move(finding));
}

}  // namespace shw
