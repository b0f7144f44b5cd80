// One tensor saved by torch.save: the archive of an item, and the pickled call that rebuilds the
// tensor. Nothing is rebuilt: the call is read.
//
//   tensor   = _rebuild_tensor_v2(storage, offset, sizes, strides, grad, hooks [, {conj, neg}])
//            | _rebuild_tensor_v3(storage, offset, sizes, strides, grad, hooks, dtype [, {..}])
//            | _rebuild_tensor(storage, offset, sizes, strides)
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
#include "core/formats/common/pickle.h"
#include "core/formats/common/zip.h"

namespace shw {

// What a rebuild call says.
struct PickledTensor {
  Dtype dtype = Dtype::kUnknown;
  Extents sizes;
  Extents strides;
  std::int64_t storage_offset = 0;  // in elements
  std::string storage_key;          // "0": the record data/0
  std::uint64_t storage_bytes = 0;
  std::uint64_t storage_unit = 1;  // bytes of what the storage itself is said to hold
  bool requires_grad = false;
  // It requires grad by the word of _rebuild_tensor_v3 itself, which cannot make such a tensor:
  // torch.load stops there (torch 2.6 and 2.15).
  bool stops_torch = false;
  bool conjugate = false;
  bool negative = false;
  bool has_view_word = false;  // of the form before zip
  bool is_untyped = false;     // its storage
  // Of one item alone: its pickle names other storages as well, which torch makes all the same.
  bool names_other_storages = false;
};

// True for a call that makes a tensor, or wraps one: what pickled_tensor() is worth trying on.
bool is_tensor_call(const PickleTree& tree, NodeId node);
// One that wraps a tensor as a torch.nn.Parameter.
bool is_parameter_call(const PickleTree& tree, NodeId node);

// The attributes that such a call gives its tensor; kAbsent where it gives none.
NodeId tensor_attributes(const PickleTree& tree, NodeId node);

// The key of a storage's persistent id; nothing for any other node.
std::optional<std::string_view> storage_key(const PickleTree& tree, NodeId node);

// kUnsupported names the class of a tensor that is no plain one; kDamaged says what is impossible
// in it.
Result<PickledTensor> pickled_tensor(const PickleTree& tree, NodeId node, const std::string& file);

// Finds the storage record of a pickled tensor and checks that it holds what the view needs.
Result<ItemHeader> header_of(const ZipReader& zip, const PickledTensor& tensor, bool big_endian);

// Every storage that a pickle refers to has a record, as long as it is said to be.
Status check_storages(const ZipReader& zip, const PickleTree& tree);

// data.pkl, and the byteorder record: absent means little.
Result<Bytes> read_pickle_record(const ZipReader& zip, std::uint64_t limit);
Result<bool> is_big_endian(const ZipReader& zip);

struct TorchItem {
  ZipReader zip;
  ItemHeader header;
  std::string storage_key;
};
// `read`: what of its ends is there already (ZipReader::open).
Result<TorchItem> open_torch_item(std::shared_ptr<const ByteSource> source, std::uint64_t base,
                                  std::uint64_t length, ZipEnds read = {});

}  // namespace shw
