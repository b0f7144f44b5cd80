#include "core/formats/safetensors/safetensors_formats.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "core/base/words.h"
#include "core/formats/common/codecs.h"
#include "core/formats/safetensors/safetensors_format_writer.h"

namespace shw {
namespace {

// The three numbers of "shard-00002-model-00001-of-00003.safetensors"; empty for other names.
struct ShardName {
  std::uint32_t shard = 0, file = 0, files = 0;
};
std::optional<ShardName> shard_name(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  ShardName out;
  auto take = [&](std::string_view before, std::uint32_t& number) {
    if (!name.starts_with(before)) return false;
    name.remove_prefix(before.size());
    auto taken = consume_number(name);
    number = taken.value_or(0);
    return taken.has_value();
  };
  bool whole = take("shard-", out.shard) && take("-model-", out.file) && take("-of-", out.files) &&
               name == kSafetensorsSuffix;
  return whole ? std::optional(out) : std::nullopt;
}

// Missing files of the grid of numbers. Numbers are untrusted: a mostly empty grid is not
// one.
FormatTraits::Unlisted unlisted_shards(const std::vector<std::string_view>& paths) {
  // If all pieces of a part are missing, each file is listed, up to this number.
  constexpr std::uint64_t kMaxMissingFiles = 2000;
  std::set<std::pair<std::uint32_t, std::uint32_t>> there;
  std::set<std::uint32_t> parts;
  std::uint32_t shards = 0, files = 0;
  for (std::string_view path : paths) {
    auto name = shard_name(path);
    if (!name || (files != 0 && name->files != files)) continue;
    files = name->files;
    shards = std::max(shards, name->shard);
    there.insert({name->shard, name->file});
    parts.insert(name->file);
  }
  FormatTraits::Unlisted out{there.size(), shards};
  auto all = std::uint64_t{shards} * files;
  if (there.size() < 2 || all == there.size()) return out;
  const bool is_grid = all <= 2 * there.size();
  if (!is_grid && all > kMaxMissingFiles) return out;
  for (std::uint32_t shard = 1; shard <= shards; ++shard) {
    for (std::uint32_t file = 1; file <= files; ++file) {
      if (there.contains({shard, file}) || (!is_grid && parts.contains(file))) continue;
      out.missing.push_back(
          fmt::format("shard-{:05}-model-{:05}-of-{:05}.safetensors", shard, file, files));
    }
  }
  return out;
}

}  // namespace

constexpr Format kSafetensorsFormat = {
    "safetensors",   "safetensors",
    &kRawCodec,      &kSafetensorsWriter,
    Rewrite::kFiles, {.writer_of_file = rank_in_shard_name, .has_one_piece_per_tensor = true},
};
constexpr Format kHfShardedFormat = {
    "hf-sharded",    "Hugging Face sharded safetensors",
    &kRawCodec,      &kHfShardedWriter,
    Rewrite::kFiles, {.writer_of_file = rank_in_shard_name, .unlisted_files = unlisted_shards},
};

}  // namespace shw
