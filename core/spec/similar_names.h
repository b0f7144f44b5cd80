// Matches tensors of two models whose names differ systematically: wrappers, prefixes, or one word
// replaced by another.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/progress.h"
#include "core/tensor/shape.h"

namespace shw {

struct NamedShape {
  std::string_view name;
  ExtentsView shape;
};

// The differing parts of two names, with the common parts around them. Numbers are replaced by *,
// so that all layers are equal.
struct NameChange {
  std::string here, there;  // "_orig_mod" and "", "weight_scale" and "weight_scale_inv"
  enum class At { kFront, kMiddle, kEnd } at = At::kFront;
  std::size_t common = 0;  // number of common parts
  auto operator<=>(const NameChange&) const = default;
};
NameChange name_change(std::string_view here, std::string_view there);

// For each of `here` its index in `there`; nullopt if ambiguous. First by names without
// wrappers, then by shape and a difference shared by at least two pairs or by one of
// `known`. `all_here` and `all_there`: all names of the models; words that both use are not
// replaced.
std::vector<std::optional<std::size_t>> match_similar_names(
    std::span<const NamedShape> here, std::span<const NamedShape> there,
    std::span<const std::string_view> all_here, std::span<const std::string_view> all_there,
    const std::set<NameChange>& known = {}, const Progress* progress = nullptr);

}  // namespace shw
