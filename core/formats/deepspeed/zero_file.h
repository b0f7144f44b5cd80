// A torch.save file of DeepSpeed, opened up to its pickle, and access to the pickle's values.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/formats/common/pickle_notes.h"
#include "core/formats/pickle/pickle.h"
#include "core/formats/zip/zip.h"
#include "core/model/builder.h"
#include "core/model/checkpoint.h"

namespace shw {

// A tensor in a file: a view of one storage.
struct ZeroTensor {
  Dtype dtype = Dtype::kUnknown;
  Extents sizes = {};
  Extents strides = {};
  std::int64_t element = 0;  // index of its first element in the storage
  ItemPlace place = {};
  bool big_endian = false;
  bool is_flat = false;  // one-dimensional and contiguous
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

// Problems found in files, collected so that a thousand ranks yield one finding.
using ZeroPickleFindings = PickleFindings;

class ZeroFile {
 public:
  // Errors concern the file as a whole.
  static Result<ZeroFile> open(CheckpointBuilder& builder, const Directory& directory,
                               const std::string& path, ZeroPickleFindings& notes);

  const std::string& path() const { return path_; }
  const PickleTree& tree() const { return tree_; }
  NodeId root() const { return tree_.root(); }

  // Keys and values of a dict or OrderedDict; otherwise empty.
  std::span<const NodeId> pairs(NodeId mapping) const;
  NodeId find(NodeId mapping, std::string_view key) const;
  // The value of an integer key.
  NodeId find(NodeId mapping, std::int64_t key) const;
  // Items of a list or tuple.
  std::span<const NodeId> list(NodeId node) const;
  std::string text(NodeId node) const;
  // The value of an int or an integer enumeration.
  std::optional<std::int64_t> integer(NodeId node) const;
  // Parses a torch.Size, tuple or list of non-negative numbers; nullopt on overflow.
  std::optional<Extents> shape(NodeId node) const;
  bool is_tensor(NodeId node) const;
  Result<ZeroTensor> tensor(NodeId node) const;
  // A non-tensor value in the form of an entry.
  InlinedValue value(NodeId node) const;

  // All tensors inside a value by dotted names, and other values in `values`. Unreadable tensors
  // become findings.
  void read_all_tensors(const std::string& prefix, NodeId node,
                        std::vector<NamedZeroTensor>& tensors, std::vector<NamedZeroValue>& values,
                        ZeroPickleFindings& notes) const;

 private:
  ZeroFile(std::string path, ZipReader zip, Bytes pickle, PickleTree tree)
      : path_(std::move(path)),
        zip_(std::move(zip)),
        pickle_(std::move(pickle)),
        tree_(std::move(tree)) {}

  struct CollectedValues;
  void take(CollectedValues& taking, const std::string& fqn, NodeId node, int depth) const;

  std::string path_;
  ZipReader zip_;
  Bytes pickle_;  // the tree's texts refer to it
  PickleTree tree_;
  bool big_endian_ = false;
  FileId file_ = FileId::kNone;
};

// Adds whole tensors of files to the checkpoint.
class ZeroStorages {
 public:
  explicit ZeroStorages(CheckpointBuilder& builder) : builder_(builder) {}
  // The storage at a place, added on first use.
  StorageId storage(const ItemPlace& place, bool big_endian);
  // False if a tensor of that name exists.
  bool add_whole(const std::string& fqn, const ZeroTensor& tensor,
                 std::optional<std::uint32_t> writer = std::nullopt);
  void add_value(NamedZeroValue value);
  // False if an entry of that name exists.
  bool claim_name(const std::string& fqn) { return names_.insert(fqn).second; }

 private:
  CheckpointBuilder& builder_;
  std::map<std::pair<std::uint32_t, std::int64_t>, StorageId> storages_;
  std::set<std::string> names_;
};

}  // namespace shw
