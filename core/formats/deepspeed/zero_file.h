// A torch.save file of DeepSpeed, opened as far as its pickle, and what the pickle's values say.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/formats/common/pickle.h"
#include "core/formats/common/pickle_notes.h"
#include "core/formats/common/zip.h"
#include "core/model/builder.h"
#include "core/model/checkpoint.h"

namespace shw {

// A tensor as it lies in a file: a view of one storage.
struct ZeroTensor {
  Dtype dtype = Dtype::kUnknown;
  Extents sizes = {};
  Extents strides = {};
  std::int64_t element = 0;  // where it begins in the storage
  ItemPlace place = {};
  bool big_endian = false;
  bool is_flat = false;  // one axis, without gaps
  std::int64_t count() const { return volume(sizes).value_or(0); }
};

struct NamedZeroTensor {
  std::string fqn;
  ZeroTensor tensor;
};
struct NamedZeroValue {
  std::string fqn;
  InlinedValue value;
};

// What was found while files were read, gathered so that a thousand ranks are one finding.
using ZeroNotes = PickleNotes;

class ZeroFile {
 public:
  // An error is of the file as a whole.
  static Result<ZeroFile> open(CheckpointBuilder& builder, const Directory& directory,
                               const std::string& path, ZeroNotes& notes);

  const std::string& path() const { return path_; }
  const PickleTree& tree() const { return tree_; }
  NodeId root() const { return tree_.root(); }

  // Keys and values of a dict or an OrderedDict; empty for all others.
  std::span<const NodeId> pairs(NodeId mapping) const;
  NodeId find(NodeId mapping, std::string_view key) const;
  // The value of a whole-number key.
  NodeId find(NodeId mapping, std::int64_t key) const;
  // Of a list or a tuple.
  std::span<const NodeId> list(NodeId node) const;
  std::string text(NodeId node) const;
  // Of an int, and of an enumeration of whole numbers.
  std::optional<std::int64_t> integer(NodeId node) const;
  // Of a torch.Size, a tuple or a list of non-negative numbers whose product is sane.
  std::optional<Extents> shape(NodeId node) const;
  bool is_tensor(NodeId node) const;
  Result<ZeroTensor> tensor(NodeId node) const;
  // A value that is not a tensor, as an entry keeps it.
  InlinedValue value(NodeId node) const;

  // All tensors below a value by their dotted names, and the values without one, in `values`.
  // Tensors that cannot be read become findings.
  void take_all(const std::string& prefix, NodeId node, std::vector<NamedZeroTensor>& tensors,
                std::vector<NamedZeroValue>& values, ZeroNotes& notes) const;

 private:
  ZeroFile(std::string path, ZipReader zip, Bytes pickle, PickleTree tree)
      : path_(std::move(path)),
        zip_(std::move(zip)),
        pickle_(std::move(pickle)),
        tree_(std::move(tree)) {}

  struct Taking;
  void take(Taking& taking, const std::string& fqn, NodeId node, int depth) const;

  std::string path_;
  ZipReader zip_;
  Bytes pickle_;  // which the tree's texts point into
  PickleTree tree_;
  bool big_endian_ = false;
  FileId file_ = FileId::kNone;
};

// A tensor of the checkpoint that is a whole tensor of a file.
class ZeroStorages {
 public:
  explicit ZeroStorages(CheckpointBuilder& builder) : builder_(builder) {}
  // The storage of a place, added at its first mention.
  StorageId storage(const ItemPlace& place, bool big_endian);
  // False where a tensor of that name is there.
  bool add_whole(const std::string& fqn, const ZeroTensor& tensor,
                 std::optional<std::uint32_t> writer = std::nullopt);
  void add_value(NamedZeroValue value);
  // False where an entry of that name is there.
  bool take_name(const std::string& fqn) { return names_.insert(fqn).second; }

 private:
  CheckpointBuilder& builder_;
  std::map<std::pair<std::uint32_t, std::int64_t>, StorageId> storages_;
  std::set<std::string> names_;
};

}  // namespace shw
