// Files that list named arrays, whose elements follow each or are in a file next to it.
//
//   CTranslate2, model.bin   version spec revision count (name rank dims dtype bytes elements)*
//                            count (alias name)*
//   MindSpore, .ckpt         protobuf: Checkpoint{1: Value{1: name, 2: Tensor}}*
//                            Tensor{1: dim*, 2: "Float32", 3: elements}
//   ONNX, .onnx              protobuf: ModelProto{7: GraphProto{5: TensorProto}*} (onnx.cpp)
//   OpenVINO, .xml and .bin  layers, of which the constants have places in the .bin (openvino.cpp)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/result.h"
#include "core/io/source.h"
#include "core/tensor/dtype.h"
#include "core/tensor/extents.h"

namespace shw {

struct ListedWeight {
  std::string name;
  Dtype dtype = Dtype::kUnknown;  // kUnknown: its elements are not read
  Extents sizes = {};
  std::uint64_t offset = 0, length = 0;  // of the elements
  std::string file = {};                 // that has the elements; empty: the one next to the list
};
struct WeightList {
  std::vector<ListedWeight> arrays;
  std::vector<std::pair<std::string, std::string>> aliases = {};  // other name, name
  // What has elements and is not among the arrays, as sentences.
  std::vector<std::string> left_out = {};
};

// Judged by the first bytes of a file.
bool begins_as_ctranslate2(BytesView first);
bool begins_as_mindspore(BytesView first);
bool begins_as_onnx(BytesView first);
bool begins_as_openvino(BytesView first);

Result<WeightList> read_ctranslate2(const ByteSource& source);
Result<WeightList> read_mindspore(const ByteSource& source);
Result<WeightList> read_onnx(const ByteSource& source);
Result<WeightList> read_openvino(const ByteSource& source);

}  // namespace shw
