// The tensors that one DCP item of a tensor subclass contains.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/formats/common/item_header.h"
#include "core/io/source.h"
#include "core/model/checkpoint.h"

namespace shw {

struct WrappedPart {
  std::string name;  // "qdata"
  bool requires_grad = false;
  ItemHeader header;
};
struct WrappedItem {
  std::string type;                   // "torchao.quantization.Int8Tensor"
  std::optional<Extents> stands_for;  // sizes that the class reports; nullopt if it does not
  std::vector<WrappedPart> parts;
  // Damage of a record without elements (version, byteorder, ...).
  std::optional<Error> damage;
};

// Reads items of one checkpoint; keeps its files open.
class WrappedItems {
 public:
  explicit WrappedItems(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  // nullopt if the item contains no subclass or cannot be read.
  std::optional<WrappedItem> read(ChunkId chunk);
  // The elements of a part; nullopt above `limit` bytes or if it is not the whole storage in order.
  std::optional<Bytes> elements(ChunkId chunk, const WrappedPart& part, std::uint64_t limit);

 private:
  std::shared_ptr<const ByteSource> file(FileId id);

  const Checkpoint& checkpoint_;
  std::map<FileId, std::shared_ptr<const ByteSource>> files_;
};

// True if the tensor is its whole storage in row-major order.
bool is_dense(const ItemHeader& header);

}  // namespace shw
