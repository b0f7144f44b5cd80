#include "core/combine/tensor_rows.h"

#include <utility>

#include "core/tensor/cast.h"

namespace shw {

ReadableTensor readable(std::shared_ptr<const Checkpoint> checkpoint, TensorId tensor) {
  const ExtentsView shape = checkpoint->shape(tensor);
  const Dtype dtype = checkpoint->dtype(tensor);
  return {std::move(checkpoint), tensor, {shape.begin(), shape.end()}, dtype};
}

Result<std::vector<float>> read_floats(const ReadableTensor& tensor, const Box& box) {
  if (!is_plain_float(tensor.dtype))
    return fail(ErrorKind::kUnsupported, "is of a dtype that is not computed with",
                Place{.file = {}, .tensor = std::string(tensor.checkpoint->fqn(tensor.tensor))});
  return read_box_floats(*tensor.checkpoint, tensor.tensor, box);
}

Result<Bytes> read_stored(const ReadableTensor& tensor, const Box& box) {
  return read_box_bytes(*tensor.checkpoint, tensor.tensor, box);
}

std::vector<float> transposed_matrix(const std::vector<float>& from, std::size_t rows,
                                     std::size_t columns) {
  std::vector<float> to(from.size());
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) to[j * rows + i] = from[i * columns + j];
  }
  return to;
}

}  // namespace shw
