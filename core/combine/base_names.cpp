#include "core/combine/base_names.h"

#include <algorithm>

namespace shw {
namespace {

// Visits the suffixes of a name that begin at a part, longest first, until `take` returns false.
template <class Take>
void for_each_name_suffix(std::string_view name, Take take) {
  for (std::size_t at = 0; at != std::string_view::npos;) {
    if (!take(name.substr(at))) return;
    at = name.find('.', at);
    if (at != std::string_view::npos) ++at;
  }
}

bool is_number(std::string_view part) {
  return !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
}

bool has_number(std::string_view name) {
  for (std::size_t begin = 0; begin != std::string_view::npos;) {
    const std::size_t end = name.find('.', begin);
    if (is_number(name.substr(begin, end - begin))) return true;
    begin = end == std::string_view::npos ? end : end + 1;
  }
  return false;
}

// Begin of the shortest suffix that can identify a tensor: from the part before the first number,
// or from the last part but one.
std::size_t shortest_identifying_suffix(std::string_view name) {
  std::size_t before = 0, before_last = 0, begin = 0;
  while (true) {
    const std::size_t end = name.find('.', begin);
    if (is_number(name.substr(begin, end - begin))) return before;
    if (end == std::string_view::npos) return before_last;
    before_last = begin;
    before = begin;
    begin = end + 1;
  }
}

}  // namespace

BaseNames::BaseNames(const Checkpoint& base) : base_(base) {
  for (TensorId tensor : base.tensors()) {
    for_each_name_suffix(base.fqn(tensor), [&](std::string_view end) {
      auto [found, is_new] = tensor_by_suffix_.try_emplace(std::string(end), tensor);
      if (!is_new) found->second.reset();
      return true;
    });
  }
}

std::optional<TensorId> BaseNames::find(std::string_view name) {
  std::optional<TensorId> tensor = base_.find(name);
  std::size_t alike = name.size();
  const std::size_t last = shortest_identifying_suffix(name);
  if (!tensor) {
    for_each_name_suffix(name, [&](std::string_view end) {
      if (name.size() - end.size() > last) return false;
      const auto found = tensor_by_suffix_.find(std::string(end));
      if (found == tensor_by_suffix_.end()) return true;
      tensor = found->second;
      alike = end.size();
      return false;
    });
  }
  if (!tensor) return std::nullopt;
  const std::string_view own = base_.fqn(*tensor);
  const std::string before(name.substr(0, name.size() - alike));
  const std::string there(own.substr(0, own.size() - alike));
  // Layer numbers identify tensors, so a prefix must not contain one.
  if (has_number(before) || has_number(there)) return std::nullopt;
  const bool is_one_way =
      prefixes_.try_emplace(before, there).first->second == there &&
      base_to_adapter_prefix_.try_emplace(there, before).first->second == before;
  return is_one_way ? tensor : std::nullopt;
}

}  // namespace shw
