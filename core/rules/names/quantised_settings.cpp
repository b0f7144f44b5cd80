// Bits and group size of the config that no weight has, while all weights agree on other ones.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/words.h"
#include "core/facts/names/quant_families.h"
#include "core/rules/names/quant_check.h"
#include "core/tensor/shape.h"

namespace shw {
namespace {

struct BitsAndGroup {
  std::int64_t bits = 0, group = 0;
};

// What a weight's companions say of settings. kUnknown: no shape follows from them.
enum class SettingsFit { kUnknown, kFits, kContradicts };

SettingsFit settings_fit(const Checkpoint& c, const QuantFamily& family, const QuantPair& pair,
                         const QuantSettings& settings) {
  SettingsFit fit = SettingsFit::kUnknown;
  for (std::size_t k = 0; k < family.scheme->companions.size(); ++k) {
    const auto shape_of = family.scheme->companions[k].shape;
    if (shape_of == nullptr || !pair.beside[k]) continue;
    const ExtentsView shape = c.shape(*pair.beside[k]);
    const auto expected = shape_of(settings, c.shape(pair.weight), shape);
    if (!expected) continue;
    if (!same(*expected, shape)) return SettingsFit::kContradicts;
    fit = SettingsFit::kFits;
  }
  return fit;
}

QuantSettings with_bits_and_group(QuantSettings settings, const BitsAndGroup& other) {
  settings.bits = other.bits;
  settings.group = other.group;
  return settings;
}

// The settings that fit all weights; nullopt if there are none, or several.
std::optional<BitsAndGroup> only_fitting_settings(const QuantCheck& check,
                                                  const QuantFamily& family) {
  constexpr auto kBits = std::to_array<std::int64_t>({2, 3, 4, 8});
  constexpr auto kGroups = std::to_array<std::int64_t>({-1, 16, 32, 64, 128, 256, 512, 1024});
  const Checkpoint& c = check.facts.checkpoint;
  std::optional<BitsAndGroup> found;
  for (const std::int64_t bits : kBits) {
    for (const std::int64_t group : kGroups) {
      const BitsAndGroup other{bits, group};
      const auto fits = [&](const QuantPair& pair) {
        const QuantSettings settings = settings_of(*check.config, pair.stem);
        return settings_fit(c, family, pair, with_bits_and_group(settings, other)) ==
               SettingsFit::kFits;
      };
      if (!std::all_of(family.pairs.begin(), family.pairs.end(), fits)) continue;
      if (found) return std::nullopt;
      found = other;
    }
  }
  return found;
}

// "bits 4 and group_size 128", or the one of them that differs.
std::string settings_words(const BitsAndGroup& of, const BitsAndGroup& other) {
  if (of.bits == other.bits) return fmt::format("group_size {}", of.group);
  if (of.group == other.group) return fmt::format("bits {}", of.bits);
  return fmt::format("bits {} and group_size {}", of.bits, of.group);
}

}  // namespace

bool report_wrong_settings(QuantCheck& check, const QuantFamily& family) {
  if (!check.config || !family.is_said || family.pairs.empty() || !check.config->modules.empty() ||
      !check.config->bits || !check.config->group)
    return false;
  const Checkpoint& c = check.facts.checkpoint;
  for (const QuantPair& pair : family.pairs) {
    const QuantSettings settings = settings_of(*check.config, pair.stem);
    if (settings_fit(c, family, pair, settings) != SettingsFit::kContradicts) return false;
  }
  const auto stored = only_fitting_settings(check, family);
  if (!stored) return false;
  const BitsAndGroup said{*check.config->bits, *check.config->group};
  std::vector<std::string> subjects;
  for (const QuantPair& pair : family.pairs) subjects.push_back(check.fqn(pair.weight));
  const std::string right = settings_words(*stored, said);
  check.report(fmt::format("{} says {}, and {} {} stored with {}. A loader applies scales to the "
                           "wrong elements, or fails at a shape. Set {} in {}.",
                           check.config->file, settings_words(said, *stored),
                           subjects.size() == 1 ? "its only quantised weight"
                                                : "all " + plural(subjects.size(), "weight"),
                           subjects.size() == 1 ? "is" : "are", right, right, check.config->file),
               subjects, subjects);
  return true;
}

}  // namespace shw
