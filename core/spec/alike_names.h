// Pairs tensors of two models whose names differ in the same way everywhere: wrappers, prefixes,
// and one word in place of another.
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

// How one name becomes another: the parts that differ, between those that both have. Numbers are
// stars, so that all layers say the same.
struct NameChange {
  std::string here, there;  // "_orig_mod" and "", "weight_scale" and "weight_scale_inv"
  enum class At { kFront, kMiddle, kEnd } at = At::kFront;
  std::size_t common = 0;  // parts that both have
  auto operator<=>(const NameChange&) const = default;
};
NameChange name_change(std::string_view here, std::string_view there);

// For each of `here` its index in `there`. Tensors are paired that have one name once wrappers are
// dropped, then those of one shape whose names differ in a way that at least two pairs share, or
// one of `known` pairs. What could be two is nothing. `all_here` and `all_there` are all names of
// either model: a word that both models use is not replaced.
std::vector<std::optional<std::size_t>> match_alike_names(
    std::span<const NamedShape> here, std::span<const NamedShape> there,
    std::span<const std::string_view> all_here, std::span<const std::string_view> all_there,
    const std::set<NameChange>& known = {}, const Progress* progress = nullptr);

}  // namespace shw
