// One tensor saved by torch.save: the archive of an item, and the pickled call that rebuilds the
// tensor. The call is parsed, not executed.
//
//   tensor   = _rebuild_tensor_v2(storage, offset, sizes, strides, grad, hooks [, {conj, neg}])
//            | _rebuild_tensor_v3(storage, offset, sizes, strides, grad, hooks, dtype [, {..}])
//            | _rebuild_tensor(storage, offset, sizes, strides)
//            | _rebuild_qtensor(storage, offset, sizes, strides, quantizer, grad, hooks)
//            | _rebuild_parameter[_with_state](tensor, ...)
//            | _rebuild_from_type_v2(function, Tensor | Parameter, arguments, state)
//   storage  = persistent id ("storage", class, key, location, count [, None])   None: before zip
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/formats/common/item_header.h"
#include "core/formats/pickle/pickle.h"
#include "core/formats/zip/zip.h"

namespace shw {

// The parsed arguments of a rebuild call.
struct PickledTensor {
  Dtype dtype = Dtype::kUnknown;
  Extents sizes;
  Extents strides;
  std::int64_t storage_offset = 0;  // in elements
  std::string storage_key;          // "0": the record data/0
  std::uint64_t storage_bytes = 0;
  std::uint64_t storage_unit = 1;  // bytes per element of the storage's class
  bool requires_grad = false;
  // True if the requires_grad argument of _rebuild_tensor_v3 is set: that function cannot create
  // such a tensor, so torch.load fails (torch 2.6 and 2.15).
  bool fails_in_torch_load = false;
  bool conjugate = false;
  bool negative = false;
  bool has_view_metadata = false;  // the storage id has a sixth item (format before zip)
  bool is_untyped = false;         // the storage is untyped
  // True if the item's pickle names other storages as well, which torch.load also creates.
  bool names_other_storages = false;
};

// True for a call that creates or wraps a tensor, i.e. that pickled_tensor() may parse.
bool is_tensor_call(const PickleTree& tree, NodeId node);
// True for a call that wraps a tensor as a torch.nn.Parameter.
bool is_parameter_call(const PickleTree& tree, NodeId node);

// The attributes that such a call sets on its tensor; kAbsent if none.
NodeId tensor_attributes(const PickleTree& tree, NodeId node);

// The key in a storage's persistent id; nullopt for other nodes.
std::optional<std::string_view> storage_key(const PickleTree& tree, NodeId node);

// kUnsupported names the tensor's class if it is not a plain tensor; kDamaged tells the impossible
// value.
Result<PickledTensor> pickled_tensor(const PickleTree& tree, NodeId node, const std::string& file);

// Finds the storage record of a pickled tensor and checks that it holds what the view needs.
Result<ItemHeader> header_of(const ZipReader& zip, const PickledTensor& tensor, bool big_endian);

// Checks that every storage in the pickle has a record of the recorded length.
Status check_storages(const ZipReader& zip, const PickleTree& tree);

inline constexpr std::string_view kPickleRecord = "data.pkl";
// Reads the pickle, and the byteorder record: without one, elements are little-endian.
Result<Bytes> read_pickle_record(const ZipReader& zip, std::uint64_t limit,
                                 std::string_view name = kPickleRecord);
Result<bool> is_big_endian(const ZipReader& zip);

struct TorchItem {
  ZipReader zip;
  ItemHeader header;
  std::string storage_key;
};
// `read`: bytes of the archive's ends that were already read (ZipReader::open).
Result<TorchItem> open_torch_item(std::shared_ptr<const ByteSource> source, std::uint64_t base,
                                  std::uint64_t length, ZipEnds read = {});

}  // namespace shw
