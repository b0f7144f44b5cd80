#include "core/memory_store.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "core/io/path_text.h"

namespace shw {

// One lock guards all files; tests are small.
struct MemoryStore::Tree {
  struct Node {
    bool is_folder = false;
    Bytes bytes, durable;                                               // of a file
    std::int64_t changed = 0;                                           // a counter, not a clock
    std::map<std::string, std::shared_ptr<Node>> names, durable_names;  // of a folder
  };
  std::mutex guard;
  std::shared_ptr<Node> root = std::make_shared<Node>();
  std::int64_t changes = 0;
  bool shares = false;
  std::uint64_t shared_bytes = 0;
  std::uint64_t scratch_bytes = 0, most_scratch_bytes = 0;

  Tree() { root->is_folder = true; }
};

namespace {

using TreePtr = std::shared_ptr<MemoryStore::Tree>;
using Node = MemoryStore::Tree::Node;
using NodePtr = std::shared_ptr<Node>;

NodePtr new_folder() {
  auto folder = std::make_shared<Node>();
  folder->is_folder = true;
  return folder;
}

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < path.size();) {
    std::size_t end = std::min(path.find('/', at), path.size());
    std::string part = path.substr(at, end - at);
    if (!part.empty() && part != ".") parts.push_back(std::move(part));
    at = end + 1;
  }
  return parts;
}

NodePtr below(NodePtr node, const std::string& path) {
  for (const std::string& part : parts_of(path)) {
    if (node == nullptr) break;
    auto found = node->names.find(part);
    node = found == node->names.end() ? nullptr : found->second;
  }
  return node;
}

std::string last_part(const std::string& path) {
  auto parts = parts_of(path);
  return parts.empty() ? std::string() : parts.back();
}

tl::unexpected<Error> no_such(const std::string& path) {
  return fail(ErrorKind::kIo, "is not there", {path});
}

void lose(Node& node, MemoryStore::Survives what) {
  if (what == MemoryStore::Survives::kOnlySynced) node.names = node.durable_names;
  node.durable_names = node.names;
  node.bytes = node.durable;
  for (auto& [name, child] : node.names) lose(*child, what);
}

class StoredSource final : public ByteSource {
 public:
  StoredSource(TreePtr tree, NodePtr node, std::string name)
      : tree_(std::move(tree)),
        node_(std::move(node)),
        name_(std::move(name)),
        size_(node_->bytes.size()) {}
  const std::string& name() const override { return name_; }
  std::uint64_t size() const override { return size_; }
  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::lock_guard lock(tree_->guard);
    std::uint64_t there = std::min<std::uint64_t>(size_, node_->bytes.size());
    if (offset > there || out.size() > there - offset)
      return fail(ErrorKind::kDamaged, "ends before the bytes that are needed", {name_, offset});
    std::copy_n(node_->bytes.begin() + static_cast<std::ptrdiff_t>(offset), out.size(),
                out.begin());
    return {};
  }

 private:
  TreePtr tree_;
  NodePtr node_;
  std::string name_;
  std::uint64_t size_;
};

class StoredFolder final : public Directory {
 public:
  StoredFolder(TreePtr tree, NodePtr node, std::string name)
      : tree_(std::move(tree)), node_(std::move(node)), name_(std::move(name)) {}
  const std::string& name() const override { return name_; }

  Result<std::vector<Entry>> list(std::size_t limit) const override {
    std::lock_guard lock(tree_->guard);
    std::vector<Entry> entries;
    collect(*node_, "", entries);
    if (entries.size() > limit) return fail(ErrorKind::kUnsupported, "too many files", {name_});
    return entries;
  }
  Entry stat(const std::string& path) const override {
    std::lock_guard lock(tree_->guard);
    NodePtr found = is_safe_relative_path(path) ? below(node_, path) : nullptr;
    return found == nullptr ? Entry{path} : entry_of(path, *found);
  }
  Result<std::shared_ptr<const ByteSource>> open(const std::string& path) const override {
    if (!is_safe_relative_path(path))
      return fail(ErrorKind::kDamaged, "the path points outside the checkpoint folder", {path});
    std::lock_guard lock(tree_->guard);
    NodePtr found = below(node_, path);
    if (found == nullptr || found->is_folder) return no_such(path);
    return std::make_shared<StoredSource>(tree_, std::move(found), path);
  }

 private:
  static Entry entry_of(const std::string& path, const Node& node) {
    EntryKind kind = node.is_folder ? EntryKind::kDirectory : EntryKind::kFile;
    return {path, kind, node.bytes.size(), node.changed, node.bytes.size()};
  }
  static void collect(const Node& node, const std::string& prefix, std::vector<Entry>& entries) {
    for (const auto& [name, child] : node.names) {
      if (!child->is_folder)
        entries.push_back(entry_of(prefix + name, *child));
      else if (name.find(kPartialMark) == std::string::npos)
        collect(*child, prefix + name + "/", entries);
    }
  }

  TreePtr tree_;
  NodePtr node_;
  std::string name_;
};

class StoredFile final : public OutputFile {
 public:
  StoredFile(TreePtr tree, NodePtr node) : tree_(std::move(tree)), node_(std::move(node)) {}
  Status write_at(std::uint64_t offset, std::span<const std::byte> bytes) override {
    std::lock_guard lock(tree_->guard);
    std::size_t end = static_cast<std::size_t>(offset) + bytes.size();
    if (node_->bytes.size() < end) node_->bytes.resize(end);
    std::copy(bytes.begin(), bytes.end(),
              node_->bytes.begin() + static_cast<std::ptrdiff_t>(offset));
    node_->changed = ++tree_->changes;
    return {};
  }
  Result<bool> reflink_at(std::uint64_t offset, const ByteSource& source, std::uint64_t begin,
                          std::uint64_t length) override {
    {
      std::lock_guard lock(tree_->guard);
      // The constraints of real file systems.
      bool in_blocks = offset % kShareBlock == 0 && begin % kShareBlock == 0 &&
                       length % kShareBlock == 0 && length != 0;
      if (!tree_->shares || !in_blocks) return false;
      tree_->shared_bytes += length;
    }
    SHW_TRY(Bytes bytes, read_bytes(source, begin, length));
    SHW_CHECK(write_at(offset, bytes));
    return true;
  }
  Status sync() override {
    std::lock_guard lock(tree_->guard);
    node_->durable = node_->bytes;
    return {};
  }
  Status finish(std::uint64_t length) override {
    std::lock_guard lock(tree_->guard);
    if (std::exchange(finished_, true)) return fail(ErrorKind::kUsage, "was finished already");
    node_->bytes.resize(static_cast<std::size_t>(length));
    node_->durable = node_->bytes;
    return {};
  }

 private:
  TreePtr tree_;
  NodePtr node_;
  bool finished_ = false;
};

class StoredScratch final : public ScratchFile {
 public:
  StoredScratch(TreePtr tree, std::string name) : tree_(std::move(tree)), name_(std::move(name)) {}
  StoredScratch(const StoredScratch&) = delete;
  StoredScratch& operator=(const StoredScratch&) = delete;
  ~StoredScratch() override {
    std::lock_guard lock(tree_->guard);
    tree_->scratch_bytes -= bytes_.size();
  }
  const std::string& name() const override { return name_; }
  std::uint64_t size() const override {
    std::lock_guard lock(tree_->guard);
    return bytes_.size();
  }
  Status write_at(std::uint64_t offset, BytesView bytes) override {
    std::lock_guard lock(tree_->guard);
    const std::size_t before = bytes_.size(), end = static_cast<std::size_t>(offset) + bytes.size();
    if (before < end) bytes_.resize(end);
    std::copy(bytes.begin(), bytes.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(offset));
    tree_->scratch_bytes += bytes_.size() - before;
    tree_->most_scratch_bytes = std::max(tree_->most_scratch_bytes, tree_->scratch_bytes);
    return {};
  }
  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::lock_guard lock(tree_->guard);
    if (offset > bytes_.size() || out.size() > bytes_.size() - offset)
      return fail(ErrorKind::kDamaged, "ends before the bytes that are needed", {name_, offset});
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
    return {};
  }

 private:
  TreePtr tree_;
  std::string name_;
  Bytes bytes_;
};

class StoredWritable final : public WritableDirectory {
 public:
  StoredWritable(TreePtr tree, NodePtr node, std::string path)
      : tree_(std::move(tree)), node_(std::move(node)), path_(std::move(path)) {}
  const std::string& path() const override { return path_; }

  Result<std::unique_ptr<OutputFile>> create_file(const std::string& relative) override {
    std::lock_guard lock(tree_->guard);
    SHW_TRY(NodePtr made, new_file(relative));
    return std::make_unique<StoredFile>(tree_, std::move(made));
  }
  Result<std::unique_ptr<OutputFile>> join_file(const std::string& relative) override {
    std::lock_guard lock(tree_->guard);
    NodePtr found = is_safe_relative_path(relative) ? below(node_, relative) : nullptr;
    if (found == nullptr || found->is_folder) return no_such(relative);
    return std::make_unique<StoredFile>(tree_, std::move(found));
  }
  Result<std::shared_ptr<ScratchFile>> create_scratch() override {
    return std::make_shared<StoredScratch>(tree_, path_ + "/(decoded)");
  }
  Result<bool> copy_file_durably(const std::string& source_path, const std::string& relative,
                                 const ExtentVisitor* passing, Progress* progress) override {
    if (is_cancelled(progress)) return cancelled_error();
    std::lock_guard lock(tree_->guard);
    NodePtr source = below(tree_->root, source_path);
    if (source == nullptr || source->is_folder) return no_such(source_path);
    SHW_TRY(NodePtr made, new_file(relative));
    made->durable = made->bytes = source->bytes;
    made->changed = source->changed;
    if (progress != nullptr) progress->add(made->bytes.size());
    if (passing != nullptr) SHW_CHECK(passing->bytes(made->bytes));
    return passing != nullptr;
  }
  Status rename(const std::string& from, const std::string& to) override {
    std::lock_guard lock(tree_->guard);
    SHW_TRY(NodePtr source, folder_of(from, false));
    SHW_TRY(NodePtr target, folder_of(to, false));
    auto found = source->names.find(last_part(from));
    if (found == source->names.end()) return no_such(from);
    NodePtr node = found->second;
    source->names.erase(found);
    target->names[last_part(to)] = std::move(node);
    return {};
  }
  Status remove(const std::string& relative) override {
    std::lock_guard lock(tree_->guard);
    SHW_TRY(NodePtr folder, folder_of(relative, false));
    if (folder->names.erase(last_part(relative)) == 0) return no_such(relative);
    return {};
  }
  void keep(const std::string& relative) override {
    std::lock_guard lock(tree_->guard);
    NodePtr folder = node_;
    for (const std::string& part : parts_of(parent_of(relative))) {
      auto found = folder->names.find(part);
      if (found == folder->names.end()) return;
      folder = found->second;
      made_.push_back(folder);
    }
  }
  Status sync() override {
    std::lock_guard lock(tree_->guard);
    for (const NodePtr& folder : made_) folder->durable_names = folder->names;
    node_->durable_names = node_->names;
    return {};
  }

 private:
  Result<NodePtr> folder_of(const std::string& relative, bool make) {
    if (!is_safe_relative_path(relative))
      return fail(ErrorKind::kUsage, "the path points outside the folder", {relative});
    auto parts = parts_of(relative);
    NodePtr folder = node_;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      auto found = folder->names.find(parts[i]);
      if (found == folder->names.end() && make) {
        made_.push_back(new_folder());
        found = folder->names.emplace(parts[i], made_.back()).first;
      }
      if (found == folder->names.end() || !found->second->is_folder) return no_such(relative);
      folder = found->second;
    }
    return folder;
  }
  Result<NodePtr> new_file(const std::string& relative) {
    SHW_TRY(NodePtr folder, folder_of(relative, true));
    auto [at, added] = folder->names.try_emplace(last_part(relative), nullptr);
    if (!added) return fail(ErrorKind::kIo, "is there already", {relative});
    at->second = std::make_shared<Node>();
    at->second->changed = ++tree_->changes;
    return at->second;
  }

  TreePtr tree_;
  NodePtr node_;
  std::string path_;
  std::vector<NodePtr> made_;  // created or kept: sync() makes the names in them durable
};

}  // namespace

MemoryStore::MemoryStore() : tree_(std::make_shared<Tree>()) {}
MemoryStore::~MemoryStore() = default;

void MemoryStore::put(const std::string& path, Bytes bytes) {
  std::lock_guard lock(tree_->guard);
  NodePtr node = tree_->root;
  auto parts = parts_of(path);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    NodePtr& next = node->names[parts[i]];
    if (next == nullptr) next = i + 1 < parts.size() ? new_folder() : std::make_shared<Node>();
    node->durable_names[parts[i]] = next;
    node = next;
  }
  node->durable = node->bytes = std::move(bytes);
  node->changed = ++tree_->changes;
}

std::optional<Bytes> MemoryStore::get(const std::string& path) const {
  std::lock_guard lock(tree_->guard);
  NodePtr node = below(tree_->root, path);
  if (node == nullptr || node->is_folder) return std::nullopt;
  return node->bytes;
}

void MemoryStore::share_blocks() {
  std::lock_guard lock(tree_->guard);
  tree_->shares = true;
}

std::uint64_t MemoryStore::shared_bytes() const {
  std::lock_guard lock(tree_->guard);
  return tree_->shared_bytes;
}

MemoryStore::Scratch MemoryStore::scratch() const {
  std::lock_guard lock(tree_->guard);
  return {tree_->scratch_bytes, tree_->most_scratch_bytes};
}

void MemoryStore::cut_power(Survives what) {
  std::lock_guard lock(tree_->guard);
  lose(*tree_->root, what);
}

bool MemoryStore::exists(const std::string& path) const {
  std::lock_guard lock(tree_->guard);
  return below(tree_->root, path) != nullptr;
}

Result<std::string> MemoryStore::resolved(const std::string& path) const {
  std::lock_guard lock(tree_->guard);
  std::string clean = without_trailing_slashes(path);
  if (below(tree_->root, parent_of(clean)) == nullptr) return no_such(parent_of(clean));
  return clean;
}

Result<std::uint64_t> MemoryStore::free_bytes(const std::string&) const {
  return std::uint64_t{1} << 40;
}

bool MemoryStore::can_reflink(const std::string&, const ByteSource& source) const {
  std::lock_guard lock(tree_->guard);
  return tree_->shares && source.size() >= kShareBlock;
}

std::vector<std::string> MemoryStore::names(const std::string& folder) const {
  std::lock_guard lock(tree_->guard);
  std::vector<std::string> found;
  NodePtr node = below(tree_->root, folder);
  if (node == nullptr) return found;
  for (const auto& [name, child] : node->names) found.push_back(name);
  return found;
}

Result<std::shared_ptr<const Directory>> MemoryStore::read_folder(const std::string& path) const {
  std::lock_guard lock(tree_->guard);
  NodePtr node = below(tree_->root, path);
  if (node == nullptr || !node->is_folder) return no_such(path);
  return std::make_shared<StoredFolder>(tree_, std::move(node), path);
}

Result<std::unique_ptr<WritableDirectory>> MemoryStore::make_folder(const std::string& path) {
  std::unique_lock lock(tree_->guard);
  NodePtr parent = below(tree_->root, parent_of(without_trailing_slashes(path)));
  if (parent == nullptr || !parent->is_folder) return no_such(path);
  auto [at, added] = parent->names.try_emplace(last_part(path), nullptr);
  if (!added) return fail(ErrorKind::kIo, "is there already", {path});
  at->second = new_folder();
  lock.unlock();
  return edit_folder(path);
}

Result<std::unique_ptr<WritableDirectory>> MemoryStore::edit_folder(const std::string& path) {
  std::lock_guard lock(tree_->guard);
  NodePtr node = below(tree_->root, path);
  if (node == nullptr || !node->is_folder) return no_such(path);
  return std::make_unique<StoredWritable>(tree_, std::move(node), path);
}

Status MemoryStore::publish(const std::string& temporary, const std::string& final_path) {
  std::lock_guard lock(tree_->guard);
  NodePtr from = below(tree_->root, parent_of(temporary));
  NodePtr to = below(tree_->root, parent_of(without_trailing_slashes(final_path)));
  NodePtr node = below(tree_->root, temporary);
  if (from == nullptr || to == nullptr || node == nullptr) return no_such(temporary);
  if (!to->names.try_emplace(last_part(final_path), node).second)
    return fail(ErrorKind::kIo, "already exists, and is never replaced", {final_path});
  from->names.erase(last_part(temporary));
  to->durable_names = to->names;
  return {};
}

Status MemoryStore::discard(const std::string& path, const std::string& marker) {
  if (marker.empty() || last_part(path).find(marker) == std::string::npos)
    return fail(ErrorKind::kUsage, "was not made by shardwright and is not removed", {path});
  std::lock_guard lock(tree_->guard);
  NodePtr parent = below(tree_->root, parent_of(without_trailing_slashes(path)));
  if (parent == nullptr || parent->names.erase(last_part(path)) == 0) return no_such(path);
  return {};
}

}  // namespace shw
