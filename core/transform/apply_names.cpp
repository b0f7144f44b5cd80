// Steps that rename, copy or drop entries.
#include <algorithm>
#include <numeric>
#include <optional>

#include "core/base/spelling.h"
#include "core/model/state_path.h"
#include "core/transform/name_pattern.h"
#include "core/transform/named_entries.h"
#include "core/transform/packed_tensor.h"

namespace shw {
namespace {

class NewNames {
 public:
  static Result<NewNames> from(const RenameStep& step) {
    NewNames names(step);
    if (step.regex) {
      SHW_TRY(NamePattern pattern, NamePattern::from(step.from, step.to));
      names.pattern_.emplace(std::move(pattern));
    }
    return names;
  }

  // The new name; nullopt if it does not change.
  Result<std::optional<std::string>> of(const std::string& name) const {
    if (pattern_) return pattern_->renamed(name);
    return name == step_.from ? std::optional(step_.to) : std::nullopt;
  }

 private:
  explicit NewNames(const RenameStep& step) : step_(step) {}
  const RenameStep& step_;
  std::optional<NamePattern> pattern_;
};

// The new path, split like the old one; the name as one key if that is impossible.
std::vector<PathPart> new_path(const std::vector<PathPart>& path, const std::string& before,
                               const std::string& after) {
  if (path.empty()) return {};
  return renamed_path(path, before, after).value_or(std::vector<PathPart>{after});
}

// Tensors and other entries that a step visits: all, or those with one name.
struct VisitedEntries {
  std::vector<std::size_t> tensors, objects;
};

VisitedEntries visit_all_entries(TargetState& all) {
  sort_and_remove_dropped(all);
  VisitedEntries looked{std::vector<std::size_t>(all.tensors.size()),
                        std::vector<std::size_t>(all.objects.size())};
  std::iota(looked.tensors.begin(), looked.tensors.end(), std::size_t{0});
  std::iota(looked.objects.begin(), looked.objects.end(), std::size_t{0});
  return looked;
}

VisitedEntries visit_entries_with_name(TargetState& all, const std::string& name) {
  const EntryNames& names = entry_names_of(all);
  // If names occur twice, visit all entries: check_names_differ() refuses them only after a step.
  if (!names.has_unique_names()) return visit_all_entries(all);
  VisitedEntries looked;
  if (auto tensor = names.find(NamedKind::kTensor, name)) looked.tensors = {*tensor};
  if (auto object = names.find(NamedKind::kObject, name)) looked.objects = {*object};
  return looked;
}

}  // namespace

Status apply(TargetState& all, const RenameStep& step) {
  SHW_TRY(NewNames names, NewNames::from(step));
  bool found = false;
  const VisitedEntries looked =
      step.regex ? visit_all_entries(all) : visit_entries_with_name(all, step.from);
  for (std::size_t i : looked.tensors) {
    std::string before = all.tensors[i].fqn;
    SHW_TRY(auto after, names.of(before));
    if (!after) continue;
    found = true;
    if (*after == before) continue;
    SHW_TRY(TargetTensor tensor, copy_of_entry(all, i));
    tensor.path = new_path(tensor.path, before, *after);
    tensor.fqn = *after;
    NewTiling tiling = all.tensors[i].tiling;
    replace_entry_tensor(all, i, std::move(tensor));
    all.tensors[i].tiling = std::move(tiling);
  }
  for (std::size_t i : looked.objects) {
    TargetNonTensorEntry& object = all.objects[i];
    SHW_TRY(auto after, names.of(object.fqn));
    if (!after) continue;
    found = true;
    object.path = new_path(object.path, object.fqn, *after);
    rename_object(all, i, std::move(*after));
  }
  if (found) return {};
  return fail(ErrorKind::kUsage, "\"" + step.from + "\" names no entry");
}

Status apply(TargetState& all, const CopyStep& step) {
  SHW_TRY(std::size_t entry, entry_named(all, step.from));
  SHW_TRY(TargetTensor tensor, copy_of_entry(all, entry));
  SHW_TRY(TargetTensor copy, copy_of_entry(all, entry));
  copy.fqn = step.to;
  copy.path.clear();
  copy.before = {};
  // Puts the original and its copy in the place of the original.
  TargetEntry first = all.tensors[entry], second;
  first.made = std::make_shared<const PackedTensor>(std::move(tensor));
  second.fqn = step.to;
  second.made = std::make_shared<const PackedTensor>(std::move(copy));
  second.tiling = first.tiling;
  remove_entry(all, entry, {std::move(first), std::move(second)});
  return {};
}

Status apply(TargetState& all, const DropStep& step) {
  if (step.tensors.empty()) return fail(ErrorKind::kUsage, "no entry is named");
  for (const std::string& pattern : step.tensors) {
    // Anywhere in a plan, an existing name means that entry, even if it is also a shell pattern.
    const bool is_name = entry_names_of(all).has(pattern) || all.nowhere.contains(pattern);
    auto matches = [&](const std::string& fqn) {
      return is_name ? pattern == fqn : matches_pattern(pattern, fqn);
    };
    const std::size_t before = all.dropped.size();
    const VisitedEntries looked =
        is_name ? visit_entries_with_name(all, pattern) : visit_all_entries(all);
    for (std::size_t i : looked.tensors) {
      if (!matches(all.tensors[i].fqn)) continue;
      all.dropped.push_back(all.tensors[i].fqn);
      remove_entry(all, i);
    }
    for (std::size_t i : looked.objects) {
      if (!matches(all.objects[i].fqn)) continue;
      all.dropped.push_back(all.objects[i].fqn);
      remove_object(all, i);
    }
    for (auto it = is_name ? all.nowhere.find(pattern) : all.nowhere.begin();
         it != all.nowhere.end();) {
      const bool goes = matches(*it);
      if (goes) all.dropped.push_back(*it);
      it = goes ? all.nowhere.erase(it) : is_name ? all.nowhere.end() : std::next(it);
    }
    if (all.dropped.size() != before) continue;
    SHW_CHECK(entries_named(all, {pattern}));  // suggests similar names
  }
  return {};
}

}  // namespace shw
