#include "core/verbs/tensor_order.h"

#include <numeric>

namespace shw {

void TensorOrder::begin(const ListWish& wish) {
  if (checkpoint_ != wish.checkpoint) {
    names_ = fold_names(*wish.checkpoint);
    text_.reset();
    sorted_by_.reset();
  }
  if (report_ != wish.report) {  // finding:* and the order by findings look at it
    text_.reset();
    sorted_by_.reset();
  }
  checkpoint_ = wish.checkpoint;
  report_ = wish.report;
}

const std::vector<std::uint32_t>& TensorOrder::sorted(const ListWish& wish) {
  if (sorted_by_ == wish.sort && sorted_down_ == wish.descending) return sorted_;
  sorted_.resize(checkpoint_->tensor_count());
  std::iota(sorted_.begin(), sorted_.end(), 0u);
  sort_tensors(*checkpoint_, report_.get(), wish.sort, wish.descending, sorted_);
  sorted_by_ = wish.sort;
  sorted_down_ = wish.descending;
  return sorted_;
}

Result<std::vector<std::uint32_t>> TensorOrder::list(const ListWish& wish, Progress* progress) {
  begin(wish);
  FilterHelp help{&names_};
  if (text_ && is_narrower(wish.filter, *text_)) help.among = &passed_;
  SHW_TRY(auto passed, filter_tensors(*checkpoint_, report_.get(), wish.filter, progress, help));
  passed_ = std::move(passed);
  text_ = wish.filter;
  if (wish.sort == SortKey::kRecorded && !wish.descending) return passed_;
  const std::vector<std::uint32_t>& all = sorted(wish);
  if (passed_.size() == all.size()) return all;
  std::vector<bool> passes(all.size(), false);
  for (std::uint32_t tensor : passed_) passes[tensor] = true;
  std::vector<std::uint32_t> order;
  order.reserve(passed_.size());
  for (std::uint32_t tensor : all) {
    if (passes[tensor]) order.push_back(tensor);
  }
  return order;
}

}  // namespace shw
