#include "core/spec/similar_names.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "core/base/cancellable_range.h"
#include "core/model/state_names.h"

namespace shw {
namespace {

// Limit of tensors with one shape in a layer: a module has at most a dozen, and experts are
// numbered.
constexpr std::size_t kMaxAlike = 64;

using Parts = std::vector<std::string_view>;

Parts parts_of_name(std::string_view name) {
  Parts parts;
  for (;;) {
    const std::size_t dot = name.find('.');
    parts.push_back(name.substr(0, dot));
    if (dot == std::string_view::npos) return parts;
    name.remove_prefix(dot + 1);
  }
}

std::string digits_as_stars(std::string_view text) {
  std::string out;
  for (char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) out += c;
    if (digit && !out.ends_with('*')) out += '*';
  }
  return out;
}

std::string joined(const Parts& parts, std::size_t begin, std::size_t end) {
  std::string out;
  for (std::size_t i = begin; i < end; ++i) {
    if (i != begin) out += '.';
    out += digits_as_stars(parts[i]);
  }
  return out;
}

// The name without prefixes before the model's own names.
std::string name_without_prefixes(std::string_view name) {
  std::string out;
  for (std::string_view part : parts_of_name(name)) {
    const bool leads = part == "base_model" || part == "language_model" || part == "model" ||
                       part == "module" || part == "transformer" || part == "backbone";
    const bool wraps = part == "base_layer" || part == "original_module" || part == "_orig_mod" ||
                       part == "_fsdp_wrapped_module" || part == "_checkpoint_wrapped_module" ||
                       part == "_forward_module";
    if (wraps || (out.empty() && leads)) continue;
    if (!out.empty()) out += '.';
    out += part;
  }
  return out;
}

// Key of a tensor: "3.12" for "layers.3.experts.12.w", and the shape. Numbers must be equal, words
// may differ.
std::string numbers_and_shape(const NamedShape& tensor) {
  std::string key;
  for (char c : tensor.name) {
    const bool digit = c >= '0' && c <= '9';
    if (digit) key += c;
    if (!digit && !key.empty() && key.back() != ' ') key += ' ';
  }
  if (!key.ends_with(' ')) key += ' ';
  return key + to_text(tensor.shape);
}

NameChange without_common(NameChange change) {
  change.common = 0;
  return change;
}

class SimilarNames {
 public:
  SimilarNames(std::span<const NamedShape> here, std::span<const NamedShape> there,
               const Progress* progress)
      : here_(here), there_(there), progress_(progress) {
    found_.resize(here.size());
    taken_.resize(there.size());
  }

  void match_without_prefixes() {
    using ByName = std::unordered_map<std::string, std::optional<std::size_t>>;
    auto by_name = [&](std::span<const NamedShape> tensors) {
      ByName names;
      for (std::size_t i = 0; i < tensors.size() && !is_cancelled(progress_); ++i) {
        auto [found, added] = names.try_emplace(name_without_prefixes(tensors[i].name), i);
        if (!added) found->second.reset();
      }
      return names;
    };
    const ByName here = by_name(here_), there = by_name(there_);
    for (const auto& [name, one] : here) {
      auto other = there.find(name);
      if (one && other != there.end() && other->second) pair(*one, *other->second);
    }
  }

  void match_replaced(std::span<const std::string_view> all_here,
                      std::span<const std::string_view> all_there,
                      const std::set<NameChange>& known) {
    std::map<NameChange, std::vector<std::pair<std::size_t, std::size_t>>> changes;
    std::unordered_map<std::string, std::vector<std::size_t>> alike;
    for (std::size_t j = 0; j < there_.size() && !is_cancelled(progress_); ++j)
      if (!taken_[j]) alike[numbers_and_shape(there_[j])].push_back(j);
    for (std::size_t i = 0; i < here_.size() && !is_cancelled(progress_); ++i) {
      auto others = found_[i] ? alike.end() : alike.find(numbers_and_shape(here_[i]));
      if (others == alike.end() || others->second.size() > kMaxAlike) continue;
      for (std::size_t j : others->second) {
        NameChange change = name_change(here_[i].name, there_[j].name);
        const bool is_known = known.contains(without_common(change));
        if (change.here != change.there && (is_known || shares_half(change, i, j))) {
          changes[without_common(change)].emplace_back(i, j);
        }
      }
    }
    match_by_frequent_changes(changes, known, words_of(all_here), words_of(all_there));
  }

  std::vector<std::optional<std::size_t>> take() && { return std::move(found_); }

 private:
  using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;

  void pair(std::size_t i, std::size_t j) {
    if (found_[i] || taken_[j] || parse_state_fqn(here_[i].name)) return;
    found_[i] = j;
    taken_[j] = true;
  }

  bool shares_half(const NameChange& change, std::size_t i, std::size_t j) const {
    const auto dots = [](std::string_view name) {
      return 1 + static_cast<std::size_t>(std::count(name.begin(), name.end(), '.'));
    };
    return 2 * change.common >= std::min(dots(here_[i].name), dots(there_[j].name));
  }

  static std::unordered_set<std::string> words_of(std::span<const std::string_view> names) {
    std::unordered_set<std::string> words;
    for (std::string_view name : names) {
      for (std::string_view part : parts_of_name(name)) words.insert(digits_as_stars(part));
    }
    return words;
  }

  // True if both models use both words: then each lost one of two sibling tensors, and nothing was
  // renamed.
  static bool both_models_use_both_words(const NameChange& change,
                                         const std::unordered_set<std::string>& here,
                                         const std::unordered_set<std::string>& there) {
    auto all_in = [](std::string_view text, const std::unordered_set<std::string>& words) {
      if (text.empty()) return true;
      const Parts parts = parts_of_name(text);
      return std::all_of(parts.begin(), parts.end(),
                         [&](std::string_view part) { return words.contains(std::string(part)); });
    };
    return !change.here.empty() && !change.there.empty() && all_in(change.here, there) &&
           all_in(change.there, here);
  }

  // Letters at both ends that two words share: "to_q" and "q" have one, "to_q" and "k" none.
  static std::size_t shared_letters(const NameChange& change) {
    const std::string_view a = change.here, b = change.there;
    const std::size_t most = std::min(a.size(), b.size());
    std::size_t front = 0, end = 0;
    while (front < most && a[front] == b[front]) ++front;
    while (end < most - front && a[a.size() - 1 - end] == b[b.size() - 1 - end]) ++end;
    return front + end;
  }

  // "embedding" and "embeddings": one pair of such words is a renaming too.
  static bool are_nearly_equal(const NameChange& change) {
    constexpr std::size_t kMinLetters = 6;
    const std::size_t shared = shared_letters(change);
    return shared >= kMinLetters && shared + 2 >= std::max(change.here.size(), change.there.size());
  }

  void match_by_frequent_changes(const std::map<NameChange, Pairs>& changes,
                                 const std::set<NameChange>& known,
                                 const std::unordered_set<std::string>& here,
                                 const std::unordered_set<std::string>& there) {
    std::vector<const std::pair<const NameChange, Pairs>*> order;
    for (const auto& change : changes) {
      if ((change.second.size() >= 2 || known.contains(change.first) ||
           are_nearly_equal(change.first)) &&
          !both_models_use_both_words(change.first, here, there))
        order.push_back(&change);
    }
    std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
      if (a->second.size() != b->second.size()) return a->second.size() > b->second.size();
      return shared_letters(a->first) > shared_letters(b->first);
    });
    for (const auto* change : order) {
      std::map<std::size_t, std::size_t> of_here, of_there;
      for (const auto& [i, j] : change->second) {
        ++of_here[i];
        ++of_there[j];
      }
      for (const auto& [i, j] : change->second) {
        if (of_here[i] == 1 && of_there[j] == 1) pair(i, j);
      }
    }
  }

  std::span<const NamedShape> here_, there_;
  const Progress* progress_;
  std::vector<std::optional<std::size_t>> found_;
  std::vector<bool> taken_;
};

}  // namespace

NameChange name_change(std::string_view here, std::string_view there) {
  const Parts a = parts_of_name(here), b = parts_of_name(there);
  std::size_t end_a = a.size(), end_b = b.size(), front = 0;
  while (end_a > 0 && end_b > 0 && a[end_a - 1] == b[end_b - 1]) {
    --end_a;
    --end_b;
  }
  while (front < end_a && front < end_b && a[front] == b[front]) ++front;
  NameChange change{joined(a, front, end_a), joined(b, front, end_b)};
  change.common = front + (a.size() - end_a);
  if (front != 0) change.at = end_a == a.size() ? NameChange::At::kEnd : NameChange::At::kMiddle;
  return change;
}

std::vector<std::optional<std::size_t>> match_similar_names(
    std::span<const NamedShape> here, std::span<const NamedShape> there,
    std::span<const std::string_view> all_here, std::span<const std::string_view> all_there,
    const std::set<NameChange>& known, const Progress* progress) {
  SimilarNames names(here, there, progress);
  if (here.empty() || there.empty()) return std::move(names).take();
  names.match_without_prefixes();
  names.match_replaced(all_here, all_there, known);
  return std::move(names).take();
}

}  // namespace shw
