#include "core/formats/safetensors/safetensors_names.h"

#include "core/base/words.h"

namespace shw {

std::optional<std::uint32_t> rank_in_shard_name(std::string_view path) {
  path = path.substr(path.rfind('/') + 1);
  if (!path.ends_with(kSafetensorsSuffix) || !path.starts_with("shard-")) return std::nullopt;
  path.remove_prefix(6);
  auto shard = take_number(path);
  if (!shard || *shard == 0 || !path.starts_with("-model-")) return std::nullopt;
  return *shard - 1;
}

}  // namespace shw
