#include "core/combine/tensor_rows.h"

#include <cstring>
#include <utility>

#include "core/facts/values/box_bytes.h"
#include "core/tensor/cast.h"

namespace shw {
namespace {

Result<Bytes> read_as(const ReadableTensor& tensor, const Box& box, Dtype dtype) {
  const auto pieces = pieces_of(*tensor.checkpoint, tensor.tensor, dtype);
  Bytes bytes;
  if (pieces && read_box_of(*pieces, box, bytes)) return bytes;
  return fail(ErrorKind::kDamaged, "cannot be read",
              Place{.file = {}, .tensor = std::string(tensor.checkpoint->fqn(tensor.tensor))});
}

}  // namespace

ReadableTensor readable(std::shared_ptr<const Checkpoint> checkpoint, TensorId tensor) {
  const ExtentsView shape = checkpoint->shape(tensor);
  const Dtype dtype = checkpoint->dtype(tensor);
  return {std::move(checkpoint), tensor, {shape.begin(), shape.end()}, dtype};
}

Box rows_box(ExtentsView shape, std::int64_t first, std::int64_t count) {
  Box box{Extents(shape.size(), 0), {shape.begin(), shape.end()}};
  if (shape.empty()) return box;
  box.offsets[0] = first;
  box.sizes[0] = count;
  return box;
}

Result<std::vector<float>> read_floats(const ReadableTensor& tensor, const Box& box) {
  if (!is_plain_float(tensor.dtype))
    return fail(ErrorKind::kUnsupported, "is of a dtype that is not computed with",
                Place{.file = {}, .tensor = std::string(tensor.checkpoint->fqn(tensor.tensor))});
  const Dtype asked = tensor.dtype == Dtype::kFloat32 ? Dtype::kUnknown : Dtype::kFloat32;
  SHW_TRY(const Bytes bytes, read_as(tensor, box, asked));
  std::vector<float> numbers(bytes.size() / sizeof(float));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

Result<Bytes> read_stored(const ReadableTensor& tensor, const Box& box) {
  return read_as(tensor, box, Dtype::kUnknown);
}

}  // namespace shw
