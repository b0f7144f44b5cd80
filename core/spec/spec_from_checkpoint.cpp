#include "core/spec/spec_from_checkpoint.h"

#include <algorithm>
#include <compare>
#include <map>
#include <set>
#include <string>
#include <unordered_map>

#include "core/base/cancellable_range.h"
#include "core/base/checked.h"
#include "core/model/state_names.h"
#include "core/spec/similar_names.h"

namespace shw {
namespace {

// A normalised name, equal for a tensor and its counterpart. States are named by parameter and
// kind, so that they never match the parameter.
std::string plain_name(std::string_view fqn) {
  auto state = parse_state_fqn(fqn);
  if (!state) return unwrapped_name(fqn);
  return "optimizer state " + std::string(state->kind) + " " + unwrapped_name(state->key);
}

using ByName = std::unordered_map<std::string, std::optional<TensorId>>;  // nullopt: ambiguous

ByName by_plain_name(const Checkpoint& checkpoint, const Progress* progress) {
  ByName out;
  for (TensorId tensor : cancellable_range(checkpoint.tensors(), progress)) {
    auto [found, added] = out.try_emplace(plain_name(checkpoint.fqn(tensor)), tensor);
    if (!added) found->second.reset();
  }
  return out;
}

std::optional<TensorId> find_in(const ByName& names, const std::string& name) {
  auto found = names.find(name);
  return found == names.end() ? std::nullopt : found->second;
}

// Visits all splits of a name at a dot, longest rest first, then the whole name.
template <class Visit>
void for_each_prefix_split(const std::string& name, Visit visit) {
  visit(std::string(), name);
  for (std::size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
    if (name.find('.', dot + 1) == std::string::npos) return;  // a single part is not specific
    visit(name.substr(0, dot + 1), name.substr(dot + 1));
  }
}

// A replaced first part: "backbone." here, "transformer." there.
struct Replacement {
  std::string here, there;
  auto operator<=>(const Replacement&) const = default;
};

// True for "layers.3." and "layers.30.", which are members of one family.
bool differ_in_numbers_alone(const std::string& a, const std::string& b) {
  auto without_digits = [](std::string text) {
    std::erase_if(text, [](char ch) { return ch >= '0' && ch <= '9'; });
    return text;
  };
  return without_digits(a) == without_digits(b);
}

// True if a matched name begins with `first`. That prefix was then not renamed: an unmatched name
// with this prefix is missing, or another part of it was renamed.
bool is_prefix_of_any(const std::string& first, const std::vector<std::string>& found) {
  return !first.empty() && std::any_of(found.begin(), found.end(), [&](const std::string& name) {
    return name.starts_with(first);
  });
}

// A replacement that explains at least half, and at least `least`, of the unmatched
// names.
std::optional<Replacement> common_replacement(const std::vector<std::string>& alone,
                                              const std::vector<std::string>& alone_there,
                                              std::size_t least, const Progress* progress) {
  // Name rests that two reference tensors share are ambiguous.
  std::unordered_map<std::string, std::optional<std::string>> first_parts;
  for (const std::string& name : cancellable_range(alone_there, progress)) {
    for_each_prefix_split(name, [&](const std::string& first, const std::string& rest) {
      auto [found, added] = first_parts.try_emplace(rest, first);
      if (!added) found->second.reset();
    });
  }
  std::map<Replacement, std::size_t> votes;
  for (const std::string& name : cancellable_range(alone, progress)) {
    bool voted = false;
    for_each_prefix_split(name, [&](const std::string& first, const std::string& rest) {
      auto found = first_parts.find(rest);
      if (voted || found == first_parts.end() || !found->second) return;
      ++votes[{first, *found->second}];
      voted = true;
    });
  }
  auto most = std::max_element(votes.begin(), votes.end(),
                               [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == votes.end() || 2 * most->second < alone.size() || most->second < least)
    return std::nullopt;
  return most->first;
}

bool is_whole(const Checkpoint& checkpoint, TensorId tensor) {
  auto total = volume(checkpoint.shape(tensor));
  std::int64_t covered = 0;
  for (ChunkId chunk : checkpoint.chunks(tensor)) {
    auto part = volume(checkpoint.sizes(chunk));
    auto sum = part ? checked_add(covered, *part) : std::nullopt;
    if (!sum) return false;
    covered = *sum;
  }
  return total && covered == *total;
}

}  // namespace

namespace {

std::vector<std::string_view> all_names(const Checkpoint& checkpoint, const Progress* progress) {
  std::vector<std::string_view> names;
  for (TensorId tensor : cancellable_range(checkpoint.tensors(), progress))
    names.push_back(checkpoint.fqn(tensor));
  return names;
}

// Differences between the names of matched pairs.
std::set<NameChange> known_changes(const Checkpoint& checkpoint, const Checkpoint& reference,
                                   const NameMap& map, const Progress* progress) {
  std::set<NameChange> known;
  for (TensorId tensor : cancellable_range(checkpoint.tensors(), progress)) {
    const auto other = map.in_reference[index_of(tensor)];
    if (!other || checkpoint.fqn(tensor) == reference.fqn(*other)) continue;
    NameChange change = name_change(checkpoint.fqn(tensor), reference.fqn(*other));
    change.common = 0;
    known.insert(std::move(change));
  }
  return known;
}

// Matches the remaining tensors by a common replacement.
void match_remaining_tensors(const Checkpoint& checkpoint, const Checkpoint& reference,
                             const std::vector<bool>& taken, NameMap& map,
                             const Progress* progress) {
  std::vector<NamedShape> here, there;
  std::vector<TensorId> ids_here, ids_there;
  for (TensorId tensor : cancellable_range(checkpoint.tensors(), progress)) {
    if (map.in_reference[index_of(tensor)]) continue;
    here.push_back({checkpoint.fqn(tensor), checkpoint.shape(tensor)});
    ids_here.push_back(tensor);
  }
  for (TensorId tensor : cancellable_range(reference.tensors(), progress)) {
    if (taken[index_of(tensor)]) continue;
    there.push_back({reference.fqn(tensor), reference.shape(tensor)});
    ids_there.push_back(tensor);
  }
  if (here.empty() || there.empty()) return;
  auto found = match_similar_names(here, there, all_names(checkpoint, progress),
                                   all_names(reference, progress),
                                   known_changes(checkpoint, reference, map, progress), progress);
  for (std::size_t i = 0; i < found.size(); ++i)
    if (found[i]) map.in_reference[index_of(ids_here[i])] = ids_there[*found[i]];
}

NameMap match_by_names(const Checkpoint& checkpoint, const Checkpoint& reference,
                       std::vector<bool>& taken, const Progress* progress) {
  NameMap map;
  map.in_reference.resize(checkpoint.tensor_count());
  auto take = [&](TensorId tensor, TensorId other) {
    if (taken[index_of(other)]) return;
    taken[index_of(other)] = true;
    map.in_reference[index_of(tensor)] = other;
  };
  for (TensorId tensor : cancellable_range(checkpoint.tensors(), progress)) {
    if (auto other = reference.find(checkpoint.fqn(tensor))) take(tensor, *other);
  }
  ByName here = by_plain_name(checkpoint, progress), there = by_plain_name(reference, progress);
  for (const auto& [name, tensor] : cancellable_range(here, progress)) {
    if (!tensor || map.in_reference[index_of(*tensor)]) continue;
    if (auto other = find_in(there, name)) take(*tensor, *other);
  }

  std::vector<std::string> alone, alone_there, found, found_there;
  for (const auto& [name, tensor] : cancellable_range(here, progress)) {
    if (tensor) (map.in_reference[index_of(*tensor)] ? found : alone).push_back(name);
  }
  for (const auto& [name, tensor] : cancellable_range(there, progress)) {
    if (tensor) (taken[index_of(*tensor)] ? found_there : alone_there).push_back(name);
  }
  // A single unmatched tensor next to matched ones is missing, and another one is new.
  auto replacement = common_replacement(alone, alone_there, found.empty() ? 1 : 2, progress);
  if (!replacement || differ_in_numbers_alone(replacement->here, replacement->there) ||
      is_prefix_of_any(replacement->here, found) ||
      is_prefix_of_any(replacement->there, found_there))
    return map;
  for (const std::string& name : cancellable_range(alone, progress)) {
    if (!name.starts_with(replacement->here)) continue;
    auto other = find_in(there, replacement->there + name.substr(replacement->here.size()));
    if (other) take(*here[name], *other);
  }
  return map;
}

}  // namespace

NameMap match_names(const Checkpoint& checkpoint, const Checkpoint& reference,
                    const Progress* progress) {
  std::vector<bool> taken(reference.tensor_count(), false);
  NameMap map = match_by_names(checkpoint, reference, taken, progress);
  match_remaining_tensors(checkpoint, reference, taken, map, progress);
  return map;
}

Spec spec_from_checkpoint(const Checkpoint& checkpoint, const Checkpoint& reference,
                          const NameMap& names, const std::set<TensorId>& doubted,
                          const Progress* progress) {
  Spec spec;
  if (reference.directory() != nullptr) spec.source = reference.directory()->name();
  std::vector<std::string_view> name_here(reference.tensor_count());
  std::set<TensorId> left_out;
  bool has_states = false;
  for (TensorId tensor : cancellable_range(checkpoint.tensors(), progress)) {
    std::string_view fqn = checkpoint.fqn(tensor);
    has_states = has_states || parse_state_fqn(fqn).has_value();
    auto other = names.in_reference[index_of(tensor)];
    if (!other) continue;
    name_here[index_of(*other)] = fqn;
    if (doubted.contains(tensor)) left_out.insert(*other);
  }
  for (TensorId tensor : cancellable_range(reference.tensors(), progress)) {
    std::string_view renamed = name_here[index_of(tensor)];
    std::string_view fqn = renamed.empty() ? reference.fqn(tensor) : renamed;
    if (!is_whole(reference, tensor) || left_out.contains(tensor)) continue;
    if (!has_states && parse_state_fqn(fqn)) continue;
    SpecEntry entry;
    entry.shape = copy_of(reference.shape(tensor));
    if (reference.dtype(tensor) != Dtype::kUnknown) entry.dtype = reference.dtype(tensor);
    spec.entries.emplace(std::string(fqn), std::move(entry));
  }
  return spec;
}

}  // namespace shw
