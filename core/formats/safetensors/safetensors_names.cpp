#include "core/formats/safetensors/safetensors_names.h"

#include <algorithm>
#include <array>

#include "core/base/words.h"
#include "core/formats/common/part_names.h"

namespace shw {
namespace {

// Names used by transformers, Mistral, PEFT and diffusers.
constexpr auto kModelStems = std::to_array<std::string_view>(
    {"model", "consolidated", kAdapterStem, "diffusion_pytorch_model"});

// Numbers of per-rank shards are ignored: ranks without data for a part write no file.
std::optional<PartName> parse_part(std::string_view path) {
  if (rank_in_shard_name(path)) return std::nullopt;
  return parse_part_name(path, kSafetensorsSuffix);
}

}  // namespace

std::optional<std::uint32_t> rank_in_shard_name(std::string_view path) {
  path = path.substr(path.rfind('/') + 1);
  if (!path.ends_with(kSafetensorsSuffix) || !path.starts_with("shard-")) return std::nullopt;
  path.remove_prefix(6);
  auto shard = consume_number(path);
  if (!shard || *shard == 0 || !path.starts_with("-model-")) return std::nullopt;
  return *shard - 1;
}

std::vector<std::string> missing_parts(const std::vector<std::string>& paths) {
  std::vector<PartName> parts;
  for (const std::string& path : paths) {
    if (auto part = parse_part(path)) parts.push_back(std::move(*part));
  }
  return parts_not_among(parts, kSafetensorsSuffix);
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

}  // namespace shw
