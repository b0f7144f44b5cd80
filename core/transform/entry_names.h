// Index of entry names, and of removed entries, while steps are applied. Visiting all entries made
// plans with a step per tensor quadratic: 4,000 steps took 3.9 s of CPU time; now 20,000 take 0.6
// s. Entries keep their index until they are compacted (sort_and_remove_dropped(),
// named_entries.h).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace shw {

enum class NamedKind : bool { kTensor, kObject };

// Replacement of a removed entry: the entries at [first, first + count).
struct ReplacementRange {
  std::size_t first = 0, count = 0;
};

class EntryNames {
 public:
  void add(NamedKind kind, const std::string& name, std::size_t index);
  // Call it when the entry at `index` loses its name.
  void forget(NamedKind kind, const std::string& name, std::size_t index);

  // The first entry with the name.
  std::optional<std::size_t> find(NamedKind kind, const std::string& name) const;
  bool has(const std::string& name) const { return by_name_.contains(name); }
  bool has_unique_names() const { return twice_ == 0; }

  void mark_removed(NamedKind kind, std::size_t index, ReplacementRange instead);
  bool has_removed(NamedKind kind) const { return !gone(kind).empty(); }
  // True if an entry's position differs from its index.
  bool has_moved_entries() const { return moved_; }
  // Indices of the entries that still exist, among `count`, in order of their positions.
  std::vector<std::size_t> order(NamedKind kind, std::size_t count) const;

 private:
  struct Place {
    NamedKind kind = NamedKind::kTensor;
    std::size_t index = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };
  using ReplacedEntries = std::unordered_map<std::size_t, ReplacementRange>;
  const ReplacedEntries& gone(NamedKind kind) const {
    return kind == NamedKind::kTensor ? removed_tensors_ : removed_objects_;
  }

  std::unordered_multimap<std::string, Place> by_name_;
  std::size_t twice_ = 0;  // entries after the first with an equal name
  ReplacedEntries removed_tensors_, removed_objects_;
  bool moved_ = false;
};

}  // namespace shw
