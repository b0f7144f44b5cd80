// The test double of a file system that fails at a chosen step.
#include "core/io/sink.h"

namespace shw {
namespace {

Status ask(const WriteFault& decide, const char* step, const std::string& path) {
  if (auto error = decide(step, path)) return tl::unexpected<Error>(std::move(*error));
  return {};
}

class FaultySink final : public ByteSink {
 public:
  FaultySink(std::unique_ptr<ByteSink> inner, std::string path, WriteFault decide)
      : inner_(std::move(inner)), path_(std::move(path)), decide_(std::move(decide)) {}
  Status write(std::span<const std::byte> bytes) override {
    SHW_CHECK(ask(decide_, "write", path_));
    return inner_->write(bytes);
  }
  Status write_at(std::uint64_t offset, std::span<const std::byte> bytes) override {
    SHW_CHECK(ask(decide_, "write_at", path_));
    return inner_->write_at(offset, bytes);
  }
  Status skip(std::uint64_t length) override {
    SHW_CHECK(ask(decide_, "skip", path_));
    return inner_->skip(length);
  }
  std::uint64_t position() const override { return inner_->position(); }
  Status finish() override {
    SHW_CHECK(ask(decide_, "finish", path_));
    return inner_->finish();
  }

 private:
  std::unique_ptr<ByteSink> inner_;
  std::string path_;
  WriteFault decide_;
};

class FaultyWritable final : public WritableDirectory {
 public:
  FaultyWritable(std::unique_ptr<WritableDirectory> inner, WriteFault decide)
      : inner_(std::move(inner)), decide_(std::move(decide)) {}
  const std::string& path() const override { return inner_->path(); }
  Result<std::unique_ptr<ByteSink>> create(const std::string& relative) override {
    SHW_CHECK(ask(decide_, "create", relative));
    SHW_TRY(auto sink, inner_->create(relative));
    return std::make_unique<FaultySink>(std::move(sink), relative, decide_);
  }
  Status copy_in(const std::string& source_path, const std::string& relative,
                 Progress* progress) override {
    SHW_CHECK(ask(decide_, "copy", relative));
    return inner_->copy_in(source_path, relative, progress);
  }
  Status rename(const std::string& from, const std::string& to) override {
    SHW_CHECK(ask(decide_, "rename", to));
    return inner_->rename(from, to);
  }
  Status remove(const std::string& relative) override {
    SHW_CHECK(ask(decide_, "remove", relative));
    return inner_->remove(relative);
  }
  Status sync() override {
    SHW_CHECK(ask(decide_, "sync", inner_->path()));
    return inner_->sync();
  }

 private:
  std::unique_ptr<WritableDirectory> inner_;
  WriteFault decide_;
};

}  // namespace

std::unique_ptr<WritableDirectory> faulty_writable(std::unique_ptr<WritableDirectory> inner,
                                                   WriteFault decide) {
  return std::make_unique<FaultyWritable>(std::move(inner), std::move(decide));
}

}  // namespace shw
