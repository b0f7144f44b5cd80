// Which entry has which name, and which are gone, while steps are taken. Looking at all of them
// made plans with a step a tensor quadratic: 4,000 took 3.9 s of processor time, 20,000 take 0.6 s
// now. Entries keep their index until they are put in order (in_order, named_entries.h).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace shw {

enum class NamedKind : bool { kTensor, kObject };

// Stands for an entry that is gone: those at [first, first + count) take its place.
struct InItsPlace {
  std::size_t first = 0, count = 0;
};

class EntryNames {
 public:
  void add(NamedKind kind, const std::string& name, std::size_t index);
  // Whatever has this name now is another one, or nothing.
  void forget(NamedKind kind, const std::string& name, std::size_t index);

  // The first of those that have the name.
  std::optional<std::size_t> find(NamedKind kind, const std::string& name) const;
  bool has(const std::string& name) const { return by_name_.contains(name); }
  bool all_differ() const { return twice_ == 0; }

  void set_gone(NamedKind kind, std::size_t index, InItsPlace instead);
  bool any_gone(NamedKind kind) const { return !gone(kind).empty(); }
  // An entry does not stand where its index says.
  bool any_moved() const { return moved_; }
  // The indices of what is there, of `count` entries, in the order in which they stand.
  std::vector<std::size_t> order(NamedKind kind, std::size_t count) const;

 private:
  struct Place {
    NamedKind kind = NamedKind::kTensor;
    std::size_t index = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };
  using Gone = std::unordered_map<std::size_t, InItsPlace>;
  const Gone& gone(NamedKind kind) const {
    return kind == NamedKind::kTensor ? gone_tensors_ : gone_objects_;
  }

  std::unordered_multimap<std::string, Place> by_name_;
  std::size_t twice_ = 0;  // entries beyond the first of their name
  Gone gone_tensors_, gone_objects_;
  bool moved_ = false;
};

}  // namespace shw
