#include "core/verbs/names/tensor_order.h"

#include <numeric>

namespace shw {

void TensorOrder::begin(const ListOptions& options) {
  if (checkpoint_ != options.checkpoint) {
    names_ = fold_names(*options.checkpoint);
    text_.reset();
    sorted_by_.reset();
  }
  if (report_ != options.report) {  // finding:* and the order by findings depend on the report
    text_.reset();
    sorted_by_.reset();
  }
  checkpoint_ = options.checkpoint;
  report_ = options.report;
}

const std::vector<std::uint32_t>& TensorOrder::sorted(const ListOptions& options) {
  if (sorted_by_ == options.sort && sorted_down_ == options.descending) return sorted_;
  sorted_.resize(checkpoint_->tensor_count());
  std::iota(sorted_.begin(), sorted_.end(), 0u);
  sort_tensors(*checkpoint_, report_.get(), options.sort, options.descending, sorted_);
  sorted_by_ = options.sort;
  sorted_down_ = options.descending;
  return sorted_;
}

Result<std::vector<std::uint32_t>> TensorOrder::list(const ListOptions& options,
                                                     Progress* progress) {
  begin(options);
  FilterHelp help{&names_};
  if (text_ && is_narrower(options.filter, *text_)) help.among = &passed_;
  SHW_TRY(auto passed, filter_tensors(*checkpoint_, report_.get(), options.filter, progress, help));
  passed_ = std::move(passed);
  text_ = options.filter;
  if (options.sort == SortKey::kRecorded && !options.descending) return passed_;
  const std::vector<std::uint32_t>& all = sorted(options);
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
