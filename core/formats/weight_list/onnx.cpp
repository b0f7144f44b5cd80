// ONNX (onnx/onnx.proto): the weights of a model are the initializers of its graph.
//
//   ModelProto      1: ir_version, 7: GraphProto, 20: TrainingInfoProto*
//   GraphProto      1: NodeProto*, 5: TensorProto* (initializers), 15: SparseTensorProto*
//   NodeProto       3: name, 5: AttributeProto*
//   AttributeProto  1: name, 5 and 10: TensorProto*, 6 and 11: GraphProto*
//   TensorProto     1: sizes, 2: data_type, 8: name, 9: raw_data, 13: external_data (key, value)*,
//                   14: data_location; 4, 5, 6, 7, 10, 11: the elements one by one
//
// Elements beyond 2 GB are in other files, by external_data: "location", "offset" and "length".
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/checked.h"
#include "core/base/parse_text.h"
#include "core/base/words.h"
#include "core/formats/common/file_cursor.h"
#include "core/formats/weight_list/protobuf_fields.h"
#include "core/formats/weight_list/weight_list.h"
#include "core/tensor/shape.h"

namespace shw {
namespace {

constexpr std::uint64_t kMaxOnnxText = 4096;
constexpr std::size_t kMaxInitializers = 1 << 22;
constexpr unsigned kMaxGraphDepth = 32;
// Names of nested graphs repeat those of the nodes around them.
constexpr std::uint64_t kMaxOnnxNameBytes = std::uint64_t{64} << 20;
// A constant of a node that is smaller is a shape, an axis or a factor.
constexpr std::uint64_t kMinConstantBytes = 1024;

// By the number of TensorProto.DataType.
constexpr auto kOnnxDtypes = std::to_array<Dtype>({
    Dtype::kUnknown,        Dtype::kFloat32,      Dtype::kUint8,          Dtype::kInt8,
    Dtype::kUint16,         Dtype::kInt16,        Dtype::kInt32,          Dtype::kInt64,
    Dtype::kUnknown,        Dtype::kBool,         Dtype::kFloat16,        Dtype::kFloat64,
    Dtype::kUint32,         Dtype::kUint64,       Dtype::kComplex64,      Dtype::kComplex128,
    Dtype::kBfloat16,       Dtype::kFloat8E4m3fn, Dtype::kFloat8E4m3fnuz, Dtype::kFloat8E5m2,
    Dtype::kFloat8E5m2fnuz,
});

struct OnnxTensor {
  ListedWeight weight;
  bool has_elements = false;
  std::optional<std::uint64_t> length;  // of external elements
};

class OnnxReader {
 public:
  explicit OnnxReader(const ByteSource& source) : cursor_(source), file_(source.name()) {}

  Result<WeightList> run() {
    bool has_graph = false;
    while (cursor_.ok() && cursor_.left() > 0) {
      const ProtobufField field = consume_protobuf_field(cursor_);
      if (field.number == 7 && field.wire == kProtobufBytes) {
        has_graph = true;
        read_graph(cursor_.at() + field.length, "", 0);
      } else {
        training_ += field.number == 20 ? 1 : 0;
        skip_protobuf_field(cursor_, field);
      }
    }
    if (!cursor_.ok()) return cursor_.error();
    if (!has_graph)
      return fail(ErrorKind::kDamaged, "is an ONNX model without a graph", {file_, 0});
    if (large_constants_ > 0)
      list_.left_out.push_back(
          fmt::format("{} of nodes in {} ({} bytes) were not checked: only initializers are read.",
                      plural(large_constants_, "constant"), file_, constant_bytes_));
    if (sparse_ > 0)
      list_.left_out.push_back(
          fmt::format("{} in {} were not checked: sparse tensors are not decoded.",
                      plural(sparse_, "sparse initializer"), file_));
    if (!one_by_one_.empty())
      list_.left_out.push_back(fmt::format(
          "{} in {} {} not checked: the numbers are stored one by one (int32_data, int64_data), "
          "not "
          "as raw_data.",
          short_list_text(one_by_one_), file_, one_by_one_.size() == 1 ? "was" : "were"));
    if (training_ > 0)
      list_.left_out.push_back(
          fmt::format("The training part of {} (training_info) was not checked: only the model's "
                      "graph is read.",
                      file_));
    return std::move(list_);
  }

 private:
  // Reads the fields up to `end`, each with `read`, which returns false for fields to skip.
  template <class Read>
  void read_message(std::uint64_t end, Read read) {
    while (cursor_.ok() && cursor_.at() < end) {
      const ProtobufField field = consume_protobuf_field(cursor_);
      if (!cursor_.ok()) return;
      if (field.wire == kProtobufBytes && field.length > end - std::min(end, cursor_.at()))
        return cursor_.stop(ErrorKind::kDamaged,
                            "a field is longer than the message that it is in");
      if (!read(field)) skip_protobuf_field(cursor_, field);
    }
    if (cursor_.ok() && cursor_.at() != end)
      cursor_.stop(ErrorKind::kDamaged, "a message ends elsewhere than its length says");
  }

  // Initializers of a graph in a node have its name and the attribute's before their own:
  // "If_3/then_branch/weight".
  void read_graph(std::uint64_t end, const std::string& prefix, unsigned depth) {
    if (depth > kMaxGraphDepth)
      return cursor_.stop(ErrorKind::kDamaged, "graphs are nested too deep");
    read_message(end, [&](const ProtobufField& field) {
      if (field.wire != kProtobufBytes) return false;
      const std::uint64_t last = cursor_.at() + field.length;
      if (field.number == 1) {
        read_node(last, prefix, depth);
      } else if (field.number == 5) {
        add_initializer(last, prefix);
      } else {
        sparse_ += field.number == 15 ? 1 : 0;
        return false;
      }
      return true;
    });
  }

  void read_node(std::uint64_t end, const std::string& prefix, unsigned depth) {
    // Protobuf's own writers write a message in the order of its fields: the name comes first.
    std::string name;
    read_message(end, [&](const ProtobufField& field) {
      if (field.wire != kProtobufBytes) return false;
      if (field.number == 3) {
        name = cursor_.text_of(field.length, kMaxOnnxText);
        return true;
      }
      if (field.number != 5) return false;
      read_attribute(cursor_.at() + field.length, prefix + (name.empty() ? "" : name + "/"), depth);
      return true;
    });
  }

  void read_attribute(std::uint64_t end, const std::string& prefix, unsigned depth) {
    std::string name;
    read_message(end, [&](const ProtobufField& field) {
      if (field.wire != kProtobufBytes) return false;
      if (field.number == 1) {
        name = cursor_.text_of(field.length, kMaxOnnxText);
        return true;
      }
      if ((field.number == 5 || field.number == 10) && field.length >= kMinConstantBytes) {
        ++large_constants_;
        constant_bytes_ += field.length;
      }
      if (field.number != 6 && field.number != 11) return false;
      read_graph(cursor_.at() + field.length, fmt::format("{}{}/", prefix, name), depth + 1);
      return true;
    });
  }

  void add_initializer(std::uint64_t end, const std::string& prefix) {
    if (list_.arrays.size() == kMaxInitializers)
      return cursor_.stop(ErrorKind::kDamaged, "too many initializers are listed");
    OnnxTensor tensor = read_tensor(end);
    ListedWeight& weight = tensor.weight;
    weight.name = prefix + weight.name;
    name_bytes_ += weight.name.size();
    if (name_bytes_ > kMaxOnnxNameBytes)
      return cursor_.stop(ErrorKind::kDamaged, "the names of initializers are too long");
    if (!weight.file.empty()) {
      const auto elements = volume(weight.sizes);
      const auto bytes = elements ? checked_mul(static_cast<std::uint64_t>(*elements),
                                                std::uint64_t{size_of(weight.dtype)})
                                  : std::nullopt;
      weight.length = tensor.length.value_or(bytes.value_or(0));
    } else if (!tensor.has_elements && weight.dtype != Dtype::kUnknown &&
               volume(weight.sizes) != std::int64_t{0}) {
      return one_by_one_.push_back(std::move(weight.name));
    }
    list_.arrays.push_back(std::move(weight));
  }

  OnnxTensor read_tensor(std::uint64_t end) {
    OnnxTensor tensor;
    ListedWeight& weight = tensor.weight;
    read_message(end, [&](const ProtobufField& field) {
      if (field.number == 1) {
        consume_dimensions(cursor_, field, weight.sizes);
      } else if (field.number == 2 && field.wire == kProtobufVarint) {
        const std::uint64_t type = consume_varint(cursor_);
        if (type < kOnnxDtypes.size()) weight.dtype = kOnnxDtypes[static_cast<std::size_t>(type)];
      } else if (field.number == 8 && field.wire == kProtobufBytes) {
        weight.name = cursor_.text_of(field.length, kMaxOnnxText);
      } else if (field.number == 13 && field.wire == kProtobufBytes) {
        read_external(cursor_.at() + field.length, tensor);
      } else {
        // float_data and double_data, packed, are as raw_data.
        if (field.wire == kProtobufBytes &&
            (field.number == 9 || (field.number == 4 && weight.dtype == Dtype::kFloat32) ||
             (field.number == 10 && weight.dtype == Dtype::kFloat64))) {
          weight.offset = cursor_.at();
          weight.length = field.length;
          tensor.has_elements = true;
        }
        return false;
      }
      return true;
    });
    return tensor;
  }

  // StringStringEntryProto: 1: key, 2: value
  void read_external(std::uint64_t end, OnnxTensor& tensor) {
    std::string key, value;
    read_message(end, [&](const ProtobufField& field) {
      if (field.wire != kProtobufBytes || field.number > 2) return false;
      (field.number == 1 ? key : value) = cursor_.text_of(field.length, kMaxOnnxText);
      return true;
    });
    if (key == "location") tensor.weight.file = value;
    if (key != "offset" && key != "length") return;
    const auto number = parse_number<std::uint64_t>(value);
    if (!number) return cursor_.stop(ErrorKind::kDamaged, "the place of an array is no number");
    if (key == "offset")
      tensor.weight.offset = *number;
    else
      tensor.length = *number;
  }

  FileCursor cursor_;
  std::string file_;
  WeightList list_;
  std::vector<std::string> one_by_one_;
  std::uint64_t large_constants_ = 0, constant_bytes_ = 0, sparse_ = 0, training_ = 0;
  std::uint64_t name_bytes_ = 0;
};

}  // namespace

// ModelProto begins with ir_version, and the next field is the producer, opsets or the graph.
bool begins_as_onnx(BytesView first) {
  constexpr auto kNext = std::to_array<unsigned>({0x12, 0x1A, 0x22, 0x28, 0x32, 0x3A, 0x42});
  if (first.size() < 3 || first[0] != std::byte{0x08}) return false;
  const auto version = std::to_integer<unsigned>(first[1]);
  const auto next = std::to_integer<unsigned>(first[2]);
  return version > 0 && version < 64 && std::find(kNext.begin(), kNext.end(), next) != kNext.end();
}

Result<WeightList> read_onnx(const ByteSource& source) {
  return OnnxReader(source).run();
}

}  // namespace shw
