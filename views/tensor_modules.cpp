#include "views/tensor_modules.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <unordered_map>

namespace shw {
namespace {

std::size_t shared_prefix(const Checkpoint& checkpoint) {
  if (checkpoint.tensor_count() < 2) return 0;
  std::string_view first = checkpoint.fqn(TensorId{0});
  std::size_t length = first.find('.') == first.npos ? 0 : first.find('.') + 1;
  for (std::uint32_t t = 1; t < checkpoint.tensor_count() && length > 0; ++t) {
    if (!checkpoint.fqn(TensorId{t}).starts_with(first.substr(0, length))) length = 0;
  }
  // "blocks.0.…" keeps its first word, because a number alone is not a module name.
  if (length < first.size() && first[length] >= '0' && first[length] <= '9') return 0;
  return length;
}

ModuleLayer layer_of(std::string_view module) {
  for (std::size_t at = 0; at < module.size();) {
    std::size_t end = std::min(module.find('.', at), module.size());
    ModuleLayer name{module.substr(0, at), module.substr(end), 0, false};
    auto [stop, code] = std::from_chars(module.data() + at, module.data() + end, name.number);
    if (code == std::errc{} && stop == module.data() + end && end > at) {
      name.is_layer = true;
      return name;
    }
    at = end + 1;
  }
  return {};
}

std::size_t hash_of_name_dtype_shape(const Checkpoint& checkpoint, TensorId tensor,
                                     std::string_view inside) {
  std::size_t hash = std::hash<std::string_view>{}(inside);
  hash_combine(hash, static_cast<std::size_t>(checkpoint.dtype(tensor)));
  for (std::int64_t extent : checkpoint.shape(tensor))
    hash_combine(hash, static_cast<std::size_t>(extent));
  return hash;
}

}  // namespace

void hash_combine(std::size_t& hash, std::size_t value) {
  hash ^= value + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2);
}

TensorModules read_modules(const Checkpoint& checkpoint) {
  TensorModules read;
  read.prefix = shared_prefix(checkpoint);
  read.module_of.reserve(checkpoint.tensor_count());
  read.likeness.reserve(checkpoint.tensor_count());
  std::unordered_map<std::string_view, std::uint32_t> place, families;
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t) {
    std::string_view fqn = checkpoint.fqn(TensorId{t});
    std::size_t length = module_length(fqn);
    std::string_view name;
    if (length > read.prefix) name = fqn.substr(read.prefix, length - read.prefix);
    bool as_before = t > 0 && read.modules[read.module_of.back()].name == name;
    std::uint32_t module = as_before ? read.module_of.back() : 0;
    if (!as_before) {
      auto [found, is_new] = place.emplace(name, static_cast<std::uint32_t>(read.modules.size()));
      module = found->second;
      if (is_new) {
        ModuleLayer layer = layer_of(name);
        auto family =
            families.emplace(layer.before, static_cast<std::uint32_t>(families.size())).first;
        read.modules.push_back(
            {name, layer, family->second, std::hash<std::string_view>{}(layer.rest)});
      }
    }
    read.module_of.push_back(module);
    std::size_t inside = name.empty() ? 0 : read.prefix + name.size();
    read.likeness.push_back(hash_of_name_dtype_shape(checkpoint, TensorId{t}, fqn.substr(inside)));
  }
  read.families = static_cast<std::uint32_t>(families.size());
  return read;
}

}  // namespace shw
