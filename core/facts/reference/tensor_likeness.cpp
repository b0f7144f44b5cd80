#include "core/facts/reference/tensor_likeness.h"

#include <deque>

#include "core/facts/reference/likeness.h"
#include "core/facts/reference/tile_content.h"
#include "core/facts/values/value_reader.h"

namespace shw {
namespace {

constexpr std::int64_t kLeading = 2048;  // elements; up to twice as many for odd last dims

// Reads one tensor's values box by box.
class Numbers {
 public:
  Numbers(const CheckInput& input, const Checkpoint& checkpoint, TensorId tensor, Dtype dtype)
      : dtype_(dtype), boxes_(checkpoint, tensor, dtype, input.progress, /*decoded_bytes=*/0) {}
  std::optional<std::vector<float>> operator()(const Box& box) {
    auto bytes = boxes_.elements(box);
    return bytes ? std::optional(to_floats(dtype_, *bytes)) : std::nullopt;
  }

 private:
  Dtype dtype_;
  TensorBoxes boxes_;
};

}  // namespace

std::optional<Matching> match_tensors_by_correlation(const CheckInput& input,
                                                     const std::vector<TensorId>& here,
                                                     const std::vector<TensorId>& there) {
  if (here.size() < 2 || here.size() != there.size()) return std::nullopt;
  const Checkpoint &c = input.checkpoint, &reference = *input.reference;
  const Extents shape = copy_of(c.shape(here.front()));
  const auto dtype = common_dtype(c.dtype(here.front()), reference.dtype(there.front()));
  if (!dtype || !has_values(*dtype)) return std::nullopt;
  std::deque<Numbers> ours, theirs;
  std::vector<std::vector<float>> begins, begins_there;
  const Box leading = part_inside(shape, kLeading, 0);
  for (std::size_t i = 0; i < here.size(); ++i) {
    if (!same(c.shape(here[i]), shape) || !same(reference.shape(there[i]), shape) ||
        c.dtype(here[i]) != c.dtype(here.front()) ||
        reference.dtype(there[i]) != reference.dtype(there.front()))
      return std::nullopt;
    ours.emplace_back(input, c, here[i], *dtype);
    theirs.emplace_back(input, reference, there[i], *dtype);
    auto own = ours.back()(leading), other = theirs.back()(leading);
    if (!own || !other) return std::nullopt;
    begins.push_back(std::move(*own));
    begins_there.push_back(std::move(*other));
  }
  auto order = match_by_correlation(std::move(begins), std::move(begins_there),
                                    std::vector<std::size_t>(here.size(), 0));
  if (!order) return std::nullopt;
  for (std::size_t i = 0; i < here.size(); ++i) {
    if (!correlates_in_parts(shape, std::ref(ours[i]), std::ref(theirs[order->place_of[i]])))
      return std::nullopt;
  }
  return order;
}

std::uint64_t tensor_match_bytes(std::size_t tensors) {
  return 2 * tensors * 2 * sizeof(double) * static_cast<std::uint64_t>(2 * kLeading);
}

}  // namespace shw
