// Maps list rows to contents; folded layers and modules take one row. Rebuilt when the list or the
// folding changes, in time proportional to modules.
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
  std::uint32_t at = 0;  // index in the order
  bool folded = false;   // for runs and modules
};

class ListRows {
 public:
  void update(const std::shared_ptr<const ListModel>& list, const FoldSet& folded,
              const FoldSet& unfolded);
  std::uint32_t size() const { return size_; }
  ListRow at(std::uint32_t row) const;
  // The row of a tensor or of the fold that contains it; nullopt if it is filtered out. Linear
  // search, only for new selections.
  std::optional<std::uint32_t> row_of(TensorId tensor) const;

 private:
  struct Entry {
    std::uint32_t row;   // first row
    ListRow::Kind kind;  // head of a run, or a module with its tensors
    std::uint32_t run, group;
    bool folded;
  };
  std::weak_ptr<const ListModel> of_;
  std::size_t folded_ = 0, unfolded_ = 0;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> entry_of_group_;  // folded run: entry of the run
  std::uint32_t size_ = 0;
};

}  // namespace shw
