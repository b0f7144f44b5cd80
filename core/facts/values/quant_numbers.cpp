#include "core/facts/values/quant_numbers.h"

#include "core/base/checked.h"
#include "core/base/little_endian.h"
#include "core/facts/values/tensor_pieces.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

constexpr std::int64_t kMaxNumberBytes = std::int64_t{4} << 30;

Result<Bytes> read_box_as_dtype(const Checkpoint& checkpoint, TensorId tensor, const Box& box,
                                Dtype dtype) {
  const std::string fqn(checkpoint.fqn(tensor));
  auto unread = [&](const char* why) {
    return fail(ErrorKind::kDamaged, why, Place{.file = {}, .tensor = fqn});
  };
  if (!is_inside(box.offsets, box.sizes, checkpoint.shape(tensor)))
    return unread("has fewer elements than its decoder needs");
  auto pieces = pieces_of(checkpoint, tensor, dtype);
  if (!pieces) return unread("has gaps or cannot be read");
  const std::size_t element = size_of(pieces->dtype);
  const auto count = checked_volume(box.sizes);
  if (!count || *count > kMaxNumberBytes / static_cast<std::int64_t>(element))
    return unread("is too large to be read at once");
  Bytes out;
  if (!pieces->read(box, out)) return unread("cannot be read");
  return out;
}

// Reads a whole tensor of integers: casts exist only between floats.
template <class Number>
Result<std::vector<float>> whole_numbers(const Checkpoint& checkpoint, TensorId tensor,
                                         const Box& box) {
  SHW_TRY(Bytes bytes, read_box_as_dtype(checkpoint, tensor, box, Dtype::kUnknown));
  std::vector<float> out(bytes.size() / sizeof(Number));
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<float>(load_little<Number>(bytes, i * sizeof(Number)));
  return out;
}

}  // namespace

Result<Bytes> read_box_bytes(const Checkpoint& checkpoint, TensorId tensor, const Box& box) {
  return read_box_as_dtype(checkpoint, tensor, box, Dtype::kUnknown);
}

Result<std::vector<float>> read_box_floats(const Checkpoint& checkpoint, TensorId tensor,
                                           const Box& box) {
  switch (checkpoint.dtype(tensor)) {
    case Dtype::kInt8:
      return whole_numbers<std::int8_t>(checkpoint, tensor, box);
    case Dtype::kInt32:
      return whole_numbers<std::int32_t>(checkpoint, tensor, box);
    case Dtype::kInt64:
      return whole_numbers<std::int64_t>(checkpoint, tensor, box);
    default:
      break;
  }
  SHW_TRY(Bytes bytes, read_box_as_dtype(checkpoint, tensor, box, Dtype::kFloat32));
  std::vector<float> out(bytes.size() / sizeof(float));
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

Box rows_box(ExtentsView shape, std::int64_t first, std::int64_t count) {
  Box box = whole(copy_of(shape));
  if (!box.sizes.empty()) {
    box.offsets[0] = first;
    box.sizes[0] = count;
  }
  return box;
}

}  // namespace shw
