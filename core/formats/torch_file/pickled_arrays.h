// Arrays in a pickle that torch.save did not write: pickle.dump of arrays of numpy, jax and torch.
// Their elements are bytes or text in the pickle itself. Nothing is made of them.
//
//   array    = _reconstruct(ndarray, ...), state (version, shape, dtype, is_fortran, elements)
//            | _frombuffer(elements, dtype, shape, order) | scalar(dtype, elements)
//            | jax's _reconstruct_array(_reconstruct, arguments, state of the array, ...)
//   dtype    = numpy.dtype(code, ...), state (version, byte order, ...)
//   elements = bytes | text of Python 2 | _codecs.encode(text, "latin1")         (protocols to 2)
//   tensor   = what torch_item.h reads, whose storage is _load_from_bytes(a file of torch.save)
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "core/base/result.h"
#include "core/formats/pickle/pickle.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace shw {

struct PickledArray {
  Dtype dtype = Dtype::kUnknown;
  bool is_big_endian = false;
  bool is_latin1 = false;  // elements are UTF-8 of the characters 0 to 255
  bool requires_grad = false;
  Extents sizes;
  Extents strides;           // in elements
  std::int64_t first = 0;    // element of the storage
  std::uint64_t offset = 0;  // of the storage in the file
  std::uint64_t length = 0;  // of the storage in the file, bytes
};

// True for a call that makes an array or a tensor.
bool is_array_call(const PickleTree& tree, NodeId node);

class PickledArrays {
 public:
  // `file`: the whole file, which begins with the pickle. The arguments must outlive this object.
  PickledArrays(const PickleTree& tree, BytesView file, std::string name)
      : tree_(tree), file_(file), name_(std::move(name)) {}

  // kUnsupported names the array's type; kDamaged names the invalid part.
  Result<PickledArray> read(NodeId node);
  // True if each file of torch.save in the pickle holds a storage and nothing else, so that loading
  // it runs nothing.
  bool storages_are_plain();

 private:
  friend class ArrayReading;
  const Result<PickledArray>& storage(NodeId node);
  const PickleTree& tree_;
  BytesView file_;
  std::string name_;
  std::map<NodeId, Result<PickledArray>> storages_;  // of torch, each read once
};

}  // namespace shw
