// What one item of DCP holds of a tensor subclass.
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
  std::optional<Extents> stands_for;  // the sizes that the class tells, where it does
  std::vector<WrappedPart> parts;
  // Of a record that holds no elements (version, byteorder, ...): what is wrong with it.
  std::optional<Error> damage;
};

// Reads items of one checkpoint; keeps its files open.
class WrappedItems {
 public:
  explicit WrappedItems(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  // Nothing where the item holds no subclass, or cannot be read.
  std::optional<WrappedItem> read(ChunkId chunk);
  // The elements of a part; nothing where they are more than `limit` bytes or no dense storage.
  std::optional<Bytes> elements(ChunkId chunk, const WrappedPart& part, std::uint64_t limit);

 private:
  std::shared_ptr<const ByteSource> file(FileId id);

  const Checkpoint& checkpoint_;
  std::map<FileId, std::shared_ptr<const ByteSource>> files_;
};

// All of its storage, in row-major order.
bool is_dense(const ItemHeader& header);

}  // namespace shw
