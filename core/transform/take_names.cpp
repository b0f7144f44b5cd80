// Steps that say what entries are called, or that they go.
#include <algorithm>
#include <optional>

#include "core/base/spelling.h"
#include "core/model/state_path.h"
#include "core/transform/name_pattern.h"
#include "core/transform/named_entries.h"

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

  // Nothing where it keeps its name.
  Result<std::optional<std::string>> of(const std::string& name) const {
    if (pattern_) return pattern_->renamed(name);
    return name == step_.from ? std::optional(step_.to) : std::nullopt;
  }

 private:
  explicit NewNames(const RenameStep& step) : step_(step) {}
  const RenameStep& step_;
  std::optional<NamePattern> pattern_;
};

// The path cut as it was, or the name as one key where it cannot be.
std::vector<PathPart> new_path(const std::vector<PathPart>& path, const std::string& before,
                               const std::string& after) {
  if (path.empty()) return {};
  return path_after(path, before, after).value_or(std::vector<PathPart>{after});
}

bool has_entry(const Arrangement& all, const std::string& fqn) {
  auto is_it = [&](const auto& entry) { return entry.fqn == fqn; };
  return std::any_of(all.tensors.begin(), all.tensors.end(), is_it) ||
         std::any_of(all.objects.begin(), all.objects.end(), is_it);
}

}  // namespace

Status take(Arrangement& all, const RenameStep& step) {
  SHW_TRY(NewNames names, NewNames::from(step));
  bool found = false;
  for (std::size_t i = 0; i < all.tensors.size(); ++i) {
    std::string before = all.tensors[i].fqn;
    SHW_TRY(auto after, names.of(before));
    if (!after) continue;
    found = true;
    if (*after == before) continue;
    SHW_TRY(ArrangedTensor tensor, copy_of_entry(all, i));
    tensor.path = new_path(tensor.path, before, *after);
    tensor.fqn = *after;
    NewTiling tiling = all.tensors[i].tiling;
    put_entry(all, i, std::move(tensor));
    all.tensors[i].tiling = std::move(tiling);
  }
  for (ArrangedObject& object : all.objects) {
    SHW_TRY(auto after, names.of(object.fqn));
    if (!after) continue;
    found = true;
    object.path = new_path(object.path, object.fqn, *after);
    object.fqn = *after;
  }
  if (found) return {};
  return fail(ErrorKind::kUsage, "\"" + step.from + "\" names no entry");
}

Status take(Arrangement& all, const DropStep& step) {
  if (step.tensors.empty()) return fail(ErrorKind::kUsage, "no entry is named");
  for (const std::string& pattern : step.tensors) {
    // As everywhere, a name that is there is that name, whatever else it might match.
    const bool is_name = has_entry(all, pattern);
    auto matches = [is_name](const std::string& wanted, const std::string& fqn) {
      return is_name ? wanted == fqn : matches_pattern(wanted, fqn);
    };
    std::size_t before = all.tensors.size() + all.objects.size();
    std::erase_if(all.tensors, [&](const ArrangedEntry& entry) {
      if (!matches(pattern, entry.fqn)) return false;
      all.dropped.push_back(entry.fqn);
      return true;
    });
    std::erase_if(all.objects, [&](const ArrangedObject& object) {
      if (!matches(pattern, object.fqn)) return false;
      all.dropped.push_back(object.fqn);
      return true;
    });
    if (all.tensors.size() + all.objects.size() != before) continue;
    SHW_CHECK(entries_named(all, {pattern}));  // which names are near
  }
  return {};
}

}  // namespace shw
