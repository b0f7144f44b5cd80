#include "core/verbs/names/renumbered_experts.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

namespace shw::verbs {
namespace {

constexpr std::size_t kMaxDigits = 6;

// "model.layers.3.mlp.experts.12.up_proj.weight": what comes before and behind 12.
struct ExpertName {
  std::string_view before, behind;
  std::uint32_t number = 0;
};

std::optional<ExpertName> expert_name(std::string_view fqn) {
  constexpr std::string_view kWord = "experts.";
  const std::size_t word = fqn.rfind(kWord);
  if (word == std::string_view::npos) return std::nullopt;
  const std::size_t first = word + kWord.size(), end = fqn.find('.', first);
  if (end == std::string_view::npos || end - first > kMaxDigits) return std::nullopt;
  ExpertName out{fqn.substr(0, first), fqn.substr(end), 0};
  const auto read = std::from_chars(fqn.data() + first, fqn.data() + end, out.number);
  const bool is_number = read.ec == std::errc{} && read.ptr == fqn.data() + end;
  return is_number ? std::optional(out) : std::nullopt;
}

}  // namespace

std::optional<RenumberedExperts> experts_numbered_from_one(const Checkpoint& checkpoint) {
  using Key = std::tuple<std::string_view, std::string_view>;
  std::map<Key, std::map<std::uint32_t, TensorId>> families;
  for (const TensorId tensor : checkpoint.tensors()) {
    if (const auto name = expert_name(checkpoint.fqn(tensor)))
      families[{name->before, name->behind}].emplace(name->number, tensor);
  }
  if (families.empty()) return std::nullopt;
  RenumberedExperts out;
  for (const auto& [key, experts] : families) {
    std::uint32_t expected = 1;
    for (const auto& [number, tensor] : experts) {
      if (number != expected++) return std::nullopt;
      const std::string fqn = fmt::format("{}{}{}", std::get<0>(key), number - 1, std::get<1>(key));
      out.renames.emplace_back(Renamed{tensor, fqn, {}});
      out.steps.emplace_back(RenameStep{std::string(checkpoint.fqn(tensor)), fqn});
    }
  }
  return out;
}

}  // namespace shw::verbs
