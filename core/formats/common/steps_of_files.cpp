#include "core/formats/common/steps_of_files.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/words.h"

namespace shw {

void MixedStepsCheck::add(const std::string& path, std::optional<std::int64_t> step) {
  if (step) files_[*step].push_back(path);
}

std::optional<Finding> MixedStepsCheck::finding(std::string_view noun) const {
  constexpr std::size_t kMaxSteps = 64;  // in the evidence
  if (files_.size() < 2) return std::nullopt;
  const auto usual = std::max_element(
      files_.begin(), files_.end(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  // If two steps have equally many files, neither can be called the wrong one.
  const bool is_clear = std::none_of(files_.begin(), files_.end(), [&](const auto& one) {
    return one.first != usual->first && one.second.size() == usual->second.size();
  });
  Finding finding{.rule = "mixed-saves"};
  std::string text;
  std::vector<std::string> steps;
  for (const auto& [step, files] : files_) {
    if (steps.size() < kMaxSteps)
      steps.push_back(fmt::format("{} {}: {}", noun, step, plural(files.size(), "file")));
    if (is_clear && step == usual->first) continue;
    finding.subjects.insert(finding.subjects.end(), files.begin(), files.end());
    text += fmt::format("{}{} {} saved at {} {}", text.empty() ? "" : ", ", short_list_text(files),
                        files.size() == 1 ? "was" : "were", noun, step);
  }
  if (is_clear)
    text += fmt::format(", and the other {} at {} {}", plural(usual->second.size(), "file"), noun,
                        usual->first);
  finding.cause = text +
                  ". Files of different saves are mixed. Each loads, so the model becomes a "
                  "mixture of those steps.";
  finding.evidence = {{"steps", std::move(steps)}};
  return finding;
}

}  // namespace shw
