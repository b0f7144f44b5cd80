#include "core/formats/torch_file/pickled_arrays.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "core/base/checked.h"
#include "core/formats/common/legacy_torch_file.h"
#include "core/formats/common/nested_storage.h"
#include "core/formats/common/numpy_dtype.h"
#include "core/formats/common/torch_item.h"
#include "core/tensor/strided_copy.h"

namespace shw {
namespace {

constexpr int kMaxArrayWrappers = 8;

bool is_of_numpy(const PickleTree& tree, NodeId node, std::string_view name) {
  const PickleGlobal* global = tree.global(node);
  return global != nullptr && global->name == name && global->module.starts_with("numpy");
}

bool is_of_jax(const PickleTree& tree, NodeId node) {
  const PickleGlobal* global = tree.global(node);
  return global != nullptr && global->name == "_reconstruct_array" &&
         global->module.starts_with("jax");
}

// The state of an array: (version, shape, dtype, is_fortran, elements).
std::span<const NodeId> state_of_array(const PickleTree& tree, NodeId node) {
  const NodeId made_of = tree.callable(node);
  if (is_of_numpy(tree, made_of, "_reconstruct")) return tree.items(tree.state(node));
  if (!is_of_jax(tree, made_of)) return {};
  const auto arguments = tree.items(tree.arguments(node));
  const bool is_array = arguments.size() > 2 && is_of_numpy(tree, arguments[0], "_reconstruct");
  return is_array ? tree.items(arguments[2]) : std::span<const NodeId>{};
}

}  // namespace

class ArrayReading {
 public:
  ArrayReading(PickledArrays& arrays, NodeId node)
      : arrays_(arrays),
        tree_(arrays.tree_),
        node_(node),
        file_(arrays.file_),
        name_(arrays.name_) {}

  Result<PickledArray> read() {
    if (is_tensor_call(tree_, node_)) return read_tensor(node_, 0);
    const auto arguments = tree_.items(tree_.arguments(node_));
    const NodeId made_of = tree_.callable(node_);
    if (is_of_numpy(tree_, made_of, "scalar") && arguments.size() == 2)
      return read_array(arguments[0], NodeId::kAbsent, arguments[1], false);
    if (is_of_numpy(tree_, made_of, "_frombuffer") && arguments.size() == 4)
      return read_array(arguments[1], arguments[2], arguments[0], tree_.text(arguments[3]) == "F");
    const auto state = state_of_array(tree_, node_);
    if (state.size() != 5) return damaged("the state of an array is not in numpy's form");
    return read_array(state[2], state[1], state[4], tree_.integer(state[3]).value_or(0) != 0);
  }

  // The bytes that a storage's __reduce__ gives: a file of torch.save in the form before zip, whose
  // object is the storage.
  Result<PickledArray> storage(NodeId node) const {
    PickledArray array;
    const auto arguments = tree_.items(tree_.arguments(node));
    const bool is_here = is_nested_storage(tree_, node) && arguments.size() == 1 &&
                         tree_.kind(arguments[0]) == NodeKind::kBytes;
    if (!is_here) return unsupported("is a tensor whose storage is not in this pickle");
    const BytesView nested = *tree_.bytes(arguments[0]);
    SHW_CHECK(place(nested, array));
    if (!is_legacy_torch_file(nested))
      return unsupported("is a tensor whose storage has an unsupported form");
    if (!names_only_a_storage(nested))
      return unsupported("is a tensor whose storage was saved with extra data");
    SHW_TRY(ZipReader records,
            read_legacy_torch_file(memory_source(name_, Bytes(nested.begin(), nested.end()))));
    const ZipEntry* object = records.find("data.pkl");
    if (object == nullptr) return damaged("holds a storage without its object");
    const BytesView pickle = nested.subspan(object->header_offset, object->length);
    SHW_TRY(PickleTree tree, decode_pickle(pickle, name_, array.offset + object->header_offset));
    const auto ids = tree.items(tree.root());
    const auto id = ids.size() == 1 && tree.kind(tree.root()) == NodeKind::kPersistentId
                        ? tree.items(ids[0])
                        : std::span<const NodeId>{};
    const PickleGlobal* type = id.size() > 4 ? tree.global(id[1]) : nullptr;
    const auto key = type != nullptr ? tree.text(id[2]) : std::nullopt;
    const ZipEntry* record = key ? records.find_storage(*key) : nullptr;
    if (record == nullptr) return unsupported("is a tensor whose storage is not plain");
    const bool is_there = record->header_offset <= nested.size() &&
                          record->length <= nested.size() - record->header_offset;
    if (!is_there) return damaged("has a truncated storage");
    array.dtype = dtype_from_storage_class(type->name).value_or(Dtype::kUint8);
    array.offset += record->header_offset;
    array.length = record->length;
    return array;
  }

 private:
  tl::unexpected<Error> damaged(std::string message) const {
    return fail(ErrorKind::kDamaged, std::move(message), {name_, tree_.at(node_)});
  }
  tl::unexpected<Error> unsupported(std::string message) const {
    return fail(ErrorKind::kUnsupported, std::move(message), {name_, tree_.at(node_)});
  }

  // `shape`: kAbsent of a scalar.
  Result<PickledArray> read_array(NodeId dtype, NodeId shape, NodeId elements, bool is_fortran) {
    PickledArray array;
    SHW_CHECK(read_dtype(dtype, array));
    if (shape != NodeId::kAbsent) {
      SHW_TRY(array.sizes, extents(shape));
    }
    array.strides = row_major_strides(array.sizes);
    if (is_fortran) {
      std::int64_t step = 1;
      for (std::size_t d = 0; d < array.sizes.size(); ++d) {
        array.strides[d] = step;
        step = checked_mul(step, std::max<std::int64_t>(array.sizes[d], 1)).value_or(1);
      }
    }
    SHW_CHECK(place_elements(elements, array));
    const auto count = volume(array.sizes);
    const auto bytes =
        count ? checked_mul(static_cast<std::uint64_t>(*count), std::uint64_t{size_of(array.dtype)})
              : std::nullopt;
    // The pickle stores these bytes as latin1 text in UTF-8, where each byte takes one or two
    // bytes.
    const bool fits =
        bytes && (array.is_latin1 ? array.length >= *bytes && array.length <= 2 * *bytes
                                  : array.length == *bytes);
    if (!fits)
      return damaged(fmt::format("is {} of {} by its header, but has {} bytes",
                                 to_text(array.sizes), shw::name(array.dtype), array.length));
    return array;
  }

  Status read_dtype(NodeId node, PickledArray& array) const {
    const auto arguments = tree_.items(tree_.arguments(node));
    const auto state = tree_.items(tree_.state(node));
    if (!is_of_numpy(tree_, tree_.callable(node), "dtype") || arguments.empty())
      return unsupported("is an array whose type is not a numpy type");
    if (const PickleGlobal* type = tree_.global(arguments[0])) {
      const auto known = dtype_from_torch(type->name);
      if (!known) return unsupported("has elements of the type " + type->name);
      array.dtype = *known;
      return {};
    }
    const std::string code(tree_.text(arguments[0]).value_or(""));
    const auto order = state.size() > 1 ? tree_.text(state[1]) : std::nullopt;
    const NumpyDtype type = numpy_dtype(std::string(order.value_or("<")) + code);
    if (type.dtype == Dtype::kUnknown)
      return unsupported(code.starts_with('O')
                             ? std::string("holds Python objects")
                             : fmt::format("has elements of the numpy type {}", code));
    array.dtype = type.dtype;
    array.is_big_endian = type.is_big_endian;
    return {};
  }

  Result<Extents> extents(NodeId node) const {
    Extents out;
    for (NodeId item : tree_.items(node)) {
      const auto extent = tree_.integer(item);
      if (!extent || *extent < 0 || out.size() == kMaxDims) return damaged("its shape is invalid");
      out.push_back(*extent);
    }
    return out;
  }

  Status place_elements(NodeId node, PickledArray& array) const {
    const auto arguments = tree_.items(tree_.arguments(node));
    const bool is_encoded = tree_.is_global(tree_.callable(node), "_codecs", "encode") &&
                            arguments.size() == 2 && tree_.text(arguments[1]) == "latin1";
    array.is_latin1 = is_encoded;
    const NodeId held = is_encoded ? arguments[0] : node;
    if (is_empty_bytes(held)) return {};
    if (const auto bytes = tree_.bytes(held); bytes && tree_.kind(held) == NodeKind::kBytes)
      return place(*bytes, array);
    if (const auto text = tree_.text(held)) return place(std::as_bytes(std::span(*text)), array);
    return unsupported("has elements in an unsupported form");
  }

  bool is_empty_bytes(NodeId node) const {
    const PickleGlobal* made_of = tree_.global(tree_.callable(node));
    return made_of != nullptr && made_of->name == "bytes" &&
           tree_.items(tree_.arguments(node)).empty();
  }

  Status place(BytesView bytes, PickledArray& array) const {
    const bool lies_in_file =
        bytes.data() >= file_.data() && bytes.data() + bytes.size() <= file_.data() + file_.size();
    if (!lies_in_file)
      return unsupported(
          "has elements stored as escaped text (pickle protocol 0 or 1), which is not supported");
    array.offset = static_cast<std::uint64_t>(bytes.data() - file_.data());
    array.length = bytes.size();
    return {};
  }

  // _rebuild_tensor_v2(storage, first, sizes, strides, ...), of v3 with a dtype, or a wrapper.
  Result<PickledArray> read_tensor(NodeId node, int depth) {
    const PickleGlobal* made_of = tree_.global(tree_.callable(node));
    const auto arguments = tree_.items(tree_.arguments(node));
    if (made_of == nullptr || depth > kMaxArrayWrappers || arguments.empty())
      return unsupported("is a tensor in an unsupported form");
    if (made_of->name.starts_with("_rebuild_parameter")) {
      SHW_TRY(PickledArray inner, read_tensor(arguments[0], depth + 1));
      inner.requires_grad = arguments.size() > 1 && tree_.integer(arguments[1]).value_or(0) != 0;
      return inner;
    }
    const bool is_third = made_of->name == "_rebuild_tensor_v3";
    const bool is_plain =
        is_third || made_of->name == "_rebuild_tensor_v2" || made_of->name == "_rebuild_tensor";
    if (!is_plain || arguments.size() < (is_third ? 7u : 4u))
      return unsupported("is a tensor made by " + made_of->name + ", which is not supported");
    PickledArray array;
    const Result<PickledArray>& known_storage = arrays_.storage(arguments[0]);
    if (!known_storage) return tl::unexpected<Error>(known_storage.error());
    array = *known_storage;
    if (is_third) {
      const PickleGlobal* type = tree_.global(arguments[6]);
      const auto known = type != nullptr ? dtype_from_torch(type->name) : std::nullopt;
      if (!known) return unsupported("is a tensor of an unsupported dtype");
      array.dtype = *known;
    }
    return with_array_view(std::move(array), arguments);
  }

  Result<PickledArray> with_array_view(PickledArray array,
                                       std::span<const NodeId> arguments) const {
    const auto first = tree_.integer(arguments[1]);
    SHW_TRY(array.sizes, extents(arguments[2]));
    SHW_TRY(array.strides, extents(arguments[3]));
    const auto needed = first && *first >= 0 && array.strides.size() == array.sizes.size()
                            ? storage_needed(array.sizes, array.strides, *first)
                            : std::nullopt;
    const auto bytes = needed ? checked_mul(static_cast<std::uint64_t>(*needed),
                                            std::uint64_t{size_of(array.dtype)})
                              : std::nullopt;
    if (!bytes || *bytes > array.length) return damaged("reaches beyond the end of its storage");
    array.first = *first;
    return array;
  }

  PickledArrays& arrays_;
  const PickleTree& tree_;
  NodeId node_;
  BytesView file_;
  const std::string& name_;
};

bool is_array_call(const PickleTree& tree, NodeId node) {
  if (tree.kind(node) != NodeKind::kReduce) return false;
  const NodeId made_of = tree.callable(node);
  return is_tensor_call(tree, node) || is_of_numpy(tree, made_of, "_reconstruct") ||
         is_of_numpy(tree, made_of, "_frombuffer") || is_of_numpy(tree, made_of, "scalar") ||
         is_of_jax(tree, made_of);
}

const Result<PickledArray>& PickledArrays::storage(NodeId node) {
  // Calls may share the bytes, which are read once.
  const auto arguments = tree_.items(tree_.arguments(node));
  const NodeId key = is_nested_storage(tree_, node) && arguments.size() == 1 ? arguments[0] : node;
  auto known = storages_.find(key);
  if (known == storages_.end())
    known = storages_.emplace(key, ArrayReading(*this, node).storage(node)).first;
  return known->second;
}

bool PickledArrays::storages_are_plain() {
  for (std::uint32_t i = 0; i < tree_.node_count(); ++i) {
    const NodeId node{i};
    if (is_nested_storage(tree_, node) && !storage(node)) return false;
  }
  return true;
}

Result<PickledArray> PickledArrays::read(NodeId node) {
  return ArrayReading(*this, node).read();
}

}  // namespace shw
