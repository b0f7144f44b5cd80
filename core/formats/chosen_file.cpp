#include "core/formats/chosen_file.h"

#include "core/base/letter_case.h"
#include "core/formats/common/top_file.h"

namespace shw {

std::string step_pattern(std::string_view name) {
  std::string_view stem = name.ends_with(".ckpt") ? name.substr(0, name.size() - 5) : name;
  if (stem.empty() || !is_digit(stem.back())) return {};
  std::string pattern;
  for (char c : name) {
    if (!is_digit(c)) pattern += c;
    if (is_digit(c) && !pattern.ends_with('#')) pattern += '#';
  }
  return pattern;
}

std::vector<std::string> names_except(const NaturalSet& names, const std::string& chosen) {
  std::vector<std::string> others;
  for (const std::string& name : names) {
    if (name != chosen) others.push_back(name);
  }
  return others;
}

std::optional<ChosenStep> chosen_file(std::span<const Entry> entries) {
  NaturalSet files{&natural_less};
  std::set<std::string> patterns;
  bool has_last = false;
  for (const Entry& entry : entries) {
    if (!is_top_file(entry) || !entry.path.ends_with(".ckpt")) continue;
    const bool is_last = entry.path == "last.ckpt";
    has_last = has_last || is_last;
    files.insert(entry.path);
    if (!is_last) patterns.insert(step_pattern(entry.path));
  }
  // SpeechBrain writes one file per module and per counter.
  if (files.size() > 1 && files.contains("model.ckpt")) {
    ChosenStep model{"model.ckpt", "the model by its name"};
    model.aside = names_except(files, model.folder);
    return model;
  }
  if (files.size() < 2 || patterns.size() != 1 || patterns.contains("")) return {};
  ChosenStep chosen{*files.rbegin(), "the newest step by its number"};
  if (has_last) chosen = {"last.ckpt", "the last one by its name"};
  chosen.aside = names_except(files, chosen.folder);
  return chosen;
}

}  // namespace shw
