#include "core/formats/safetensors/safetensors_names.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "core/base/words.h"

namespace shw {
namespace {

// Each is looked for by its own reader: transformers, Mistral's programs, PEFT, diffusers.
constexpr auto kModelStems = std::to_array<std::string_view>(
    {"model", "consolidated", "adapter_model", "diffusion_pytorch_model"});

constexpr std::uint32_t kMostParts = 4096;  // a name may promise any number of files

struct PartName {
  std::string before;  // "model-"
  std::uint32_t number = 0, count = 0;
  std::size_t digits = 0;  // of the count
};

// Of ranks' shards the numbers say nothing: a rank that has nothing of a part does not write it.
std::optional<PartName> parse_part(std::string_view path) {
  if (!path.ends_with(kSafetensorsSuffix) || rank_in_shard_name(path)) return std::nullopt;
  path.remove_suffix(kSafetensorsSuffix.size());
  std::size_t of = path.rfind("-of-");
  std::size_t dash = of == std::string_view::npos ? of : path.substr(0, of).rfind('-');
  if (dash == std::string_view::npos) return std::nullopt;
  std::string_view number = path.substr(dash + 1, of - dash - 1), count = path.substr(of + 4);
  PartName part{std::string(path.substr(0, dash + 1)), 0, 0, count.size()};
  auto at = take_number(number), all = take_number(count);
  if (!at || !all || !number.empty() || !count.empty() || *at == 0 || *at > *all ||
      *all > kMostParts)
    return std::nullopt;
  part.number = *at;
  part.count = *all;
  return part;
}

}  // namespace

std::optional<std::uint32_t> rank_in_shard_name(std::string_view path) {
  path = path.substr(path.rfind('/') + 1);
  if (!path.ends_with(kSafetensorsSuffix) || !path.starts_with("shard-")) return std::nullopt;
  path.remove_prefix(6);
  auto shard = take_number(path);
  if (!shard || *shard == 0 || !path.starts_with("-model-")) return std::nullopt;
  return *shard - 1;
}

std::vector<std::string> missing_parts(const std::vector<std::string>& paths) {
  std::map<std::pair<std::string, std::uint32_t>, std::set<std::uint32_t>> families;
  std::map<std::string, std::size_t> digits;
  for (const std::string& path : paths) {
    auto part = parse_part(path);
    if (!part) continue;
    families[{part->before, part->count}].insert(part->number);
    digits[part->before] = part->digits;
  }
  std::vector<std::string> missing;
  for (const auto& [family, numbers] : families) {
    const auto& [before, count] = family;
    std::size_t width = digits[before];
    for (std::uint32_t number = 1; number <= count; ++number) {
      if (!numbers.contains(number))
        missing.push_back(fmt::format("{}{:0{}}-of-{:0{}}{}", before, number, width, count, width,
                                      kSafetensorsSuffix));
    }
  }
  return missing;
}

bool are_parts_of_one_save(std::string_view a, std::string_view b) {
  if (rank_in_shard_name(a) && rank_in_shard_name(b)) return true;
  auto part = parse_part(a), other = parse_part(b);
  return part && other && part->before == other->before && part->count == other->count;
}

std::string_view model_stem(std::string_view path) {
  if (!path.ends_with(kSafetensorsSuffix)) return {};
  std::string_view stem = path.substr(0, path.size() - kSafetensorsSuffix.size());
  const auto part = parse_part(path);
  if (part) stem = stem.substr(0, part->before.size() - 1);
  const auto known = std::find(kModelStems.begin(), kModelStems.end(), stem);
  return known == kModelStems.end() ? std::string_view() : *known;
}

bool is_rank_part(std::string_view path) {
  constexpr std::string_view kRank = "-rank-", kPart = "-part-";
  const std::size_t rank = path.rfind(kRank);
  if (rank == std::string_view::npos || !path.ends_with(kSafetensorsSuffix)) return false;
  path.remove_prefix(rank + kRank.size());
  path.remove_suffix(kSafetensorsSuffix.size());
  if (!take_number(path) || !path.starts_with(kPart)) return false;
  path.remove_prefix(kPart.size());
  return take_number(path) && path.empty();
}

}  // namespace shw
