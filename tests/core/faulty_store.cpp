#include "core/faulty_store.h"

#include <mutex>

namespace shw {
namespace {

Status ask(const WriteFault& decide, const char* step, const std::string& path) {
  if (auto error = decide(step, path)) return tl::unexpected<Error>(std::move(*error));
  return {};
}

class FaultyFile final : public OutputFile {
 public:
  FaultyFile(std::unique_ptr<OutputFile> inner, std::string path, WriteFault decide)
      : inner_(std::move(inner)), path_(std::move(path)), decide_(std::move(decide)) {}
  Status write_at(std::uint64_t offset, std::span<const std::byte> bytes) override {
    SHW_CHECK(ask(decide_, "write", path_));
    return inner_->write_at(offset, bytes);
  }
  Result<bool> reflink_at(std::uint64_t offset, const ByteSource& source, std::uint64_t begin,
                          std::uint64_t length) override {
    SHW_CHECK(ask(decide_, "share", path_));
    return inner_->reflink_at(offset, source, begin, length);
  }
  Status sync() override {
    SHW_CHECK(ask(decide_, "sync", path_));
    return inner_->sync();
  }
  Status finish(std::uint64_t length) override {
    SHW_CHECK(ask(decide_, "finish", path_));
    return inner_->finish(length);
  }

 private:
  std::unique_ptr<OutputFile> inner_;
  std::string path_;
  WriteFault decide_;
};

class FaultyScratch final : public ScratchFile {
 public:
  FaultyScratch(std::shared_ptr<ScratchFile> inner, std::string path, WriteFault decide,
                ReadFault reads)
      : inner_(std::move(inner)),
        path_(std::move(path)),
        decide_(std::move(decide)),
        reads_(std::move(reads)) {}
  const std::string& name() const override { return inner_->name(); }
  std::uint64_t size() const override { return inner_->size(); }
  Status write_at(std::uint64_t offset, BytesView bytes) override {
    SHW_CHECK(ask(decide_, "write", path_));
    return inner_->write_at(offset, bytes);
  }
  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    auto error = reads_ == nullptr ? std::nullopt : reads_(path_, offset, out.size());
    if (error) return tl::unexpected<Error>(std::move(*error));
    return inner_->read(offset, out);
  }

 private:
  std::shared_ptr<ScratchFile> inner_;
  std::string path_;
  WriteFault decide_;
  ReadFault reads_;
};

class FaultyFolder final : public WritableDirectory {
 public:
  FaultyFolder(std::unique_ptr<WritableDirectory> inner, WriteFault decide, ReadFault reads)
      : inner_(std::move(inner)), decide_(std::move(decide)), reads_(std::move(reads)) {}
  const std::string& path() const override { return inner_->path(); }
  Result<std::unique_ptr<OutputFile>> create_file(const std::string& relative) override {
    SHW_CHECK(ask(decide_, "create", relative));
    SHW_TRY(auto file, inner_->create_file(relative));
    return std::make_unique<FaultyFile>(std::move(file), relative, decide_);
  }
  Result<std::unique_ptr<OutputFile>> join_file(const std::string& relative) override {
    SHW_CHECK(ask(decide_, "join", relative));
    SHW_TRY(auto file, inner_->join_file(relative));
    return std::make_unique<FaultyFile>(std::move(file), relative, decide_);
  }
  Result<std::shared_ptr<ScratchFile>> create_scratch() override {
    const std::string path = inner_->path() + "/(decoded)";
    SHW_CHECK(ask(decide_, "create", path));
    SHW_TRY(auto file, inner_->create_scratch());
    return std::make_shared<FaultyScratch>(std::move(file), path, decide_, reads_);
  }
  Result<bool> copy_file_durably(const std::string& source_path, const std::string& relative,
                                 const ExtentVisitor* passing, Progress* progress) override {
    SHW_CHECK(ask(decide_, "copy", relative));
    return inner_->copy_file_durably(source_path, relative, passing, progress);
  }
  Status rename(const std::string& from, const std::string& to) override {
    SHW_CHECK(ask(decide_, "rename", to));
    return inner_->rename(from, to);
  }
  Status remove(const std::string& relative) override {
    SHW_CHECK(ask(decide_, "remove", relative));
    return inner_->remove(relative);
  }
  void keep(const std::string& relative) override { inner_->keep(relative); }
  Status sync() override {
    SHW_CHECK(ask(decide_, "sync", inner_->path()));
    return inner_->sync();
  }

 private:
  std::unique_ptr<WritableDirectory> inner_;
  WriteFault decide_;
  ReadFault reads_;
};

}  // namespace

bool ForwardingStore::exists(const std::string& path) const {
  return inner_.exists(path);
}
bool ForwardingStore::is_free_for_folder(const std::string& path) const {
  return inner_.is_free_for_folder(path);
}
Result<std::string> ForwardingStore::resolved(const std::string& path) const {
  return inner_.resolved(path);
}
Result<std::uint64_t> ForwardingStore::free_bytes(const std::string& path) const {
  return inner_.free_bytes(path);
}
bool ForwardingStore::can_reflink(const std::string& folder, const ByteSource& source) const {
  return inner_.can_reflink(folder, source);
}
std::vector<std::string> ForwardingStore::names(const std::string& folder) const {
  return inner_.names(folder);
}
Result<std::shared_ptr<const Directory>> ForwardingStore::read_folder(
    const std::string& path) const {
  return inner_.read_folder(path);
}
Result<std::unique_ptr<WritableDirectory>> ForwardingStore::make_folder(const std::string& path) {
  return inner_.make_folder(path);
}
Result<std::unique_ptr<WritableDirectory>> ForwardingStore::edit_folder(const std::string& path) {
  return inner_.edit_folder(path);
}
Status ForwardingStore::publish(const std::string& temporary, const std::string& final_path) {
  return inner_.publish(temporary, final_path);
}
Status ForwardingStore::discard(const std::string& path, const std::string& marker) {
  return inner_.discard(path, marker);
}

FaultyStore::FaultyStore(Store& store, WriteFault decide, ReadFault reads)
    : ForwardingStore(store),
      decide_([guard = std::make_shared<std::mutex>(), decide = std::move(decide)](
                  const std::string& step, const std::string& path) {
        std::lock_guard lock(*guard);
        return decide(step, path);
      }),
      reads_(std::move(reads)) {}

Result<std::shared_ptr<const Directory>> FaultyStore::read_folder(const std::string& path) const {
  SHW_TRY(auto directory, inner().read_folder(path));
  return reads_ == nullptr ? directory : faulty_directory(std::move(directory), reads_);
}

Result<std::unique_ptr<WritableDirectory>> FaultyStore::make_folder(const std::string& path) {
  SHW_CHECK(ask(decide_, "make directory", path));
  SHW_TRY(auto folder, inner().make_folder(path));
  return std::make_unique<FaultyFolder>(std::move(folder), decide_, reads_);
}

Result<std::unique_ptr<WritableDirectory>> FaultyStore::edit_folder(const std::string& path) {
  SHW_TRY(auto folder, inner().edit_folder(path));
  return std::make_unique<FaultyFolder>(std::move(folder), decide_, reads_);
}

Status FaultyStore::publish(const std::string& temporary, const std::string& final_path) {
  SHW_CHECK(ask(decide_, "publish", final_path));
  return inner().publish(temporary, final_path);
}

Status FaultyStore::discard(const std::string& path, const std::string& marker) {
  SHW_CHECK(ask(decide_, "discard", path));
  return inner().discard(path, marker);
}

}  // namespace shw
