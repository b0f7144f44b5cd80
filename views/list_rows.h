// Which row of the list shows what, with folded layers and modules taking one row each. Made anew
// when the list or what is folded changes: a sum over modules, not over tensors.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "views/digest.h"

namespace shw {

using FoldSet = std::set<std::string, std::less<>>;

struct ListRow {
  enum class Kind : std::uint8_t { kRun, kModule, kTensor };
  Kind kind = Kind::kTensor;
  std::uint32_t run = 0, group = 0;
  std::uint32_t at = 0;  // row of the order
  bool folded = false;   // of a run or a module
};

class ListRows {
 public:
  void update(const std::shared_ptr<const ListModel>& list, const FoldSet& folded,
              const FoldSet& unfolded);
  std::uint32_t size() const { return size_; }
  ListRow at(std::uint32_t row) const;
  // Where a tensor stands, or the fold that it is in; nothing where it is not in the list. A search
  // over what passes: only for a selection that is new.
  std::optional<std::uint32_t> row_of(TensorId tensor) const;

 private:
  struct Entry {
    std::uint32_t row;   // its first
    ListRow::Kind kind;  // a run's head, or a module with its tensors
    std::uint32_t run, group;
    bool folded;
  };
  std::weak_ptr<const ListModel> of_;
  std::size_t folded_ = 0, unfolded_ = 0;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> entry_of_group_;  // of a folded run: the run's
  std::uint32_t size_ = 0;
};

}  // namespace shw
