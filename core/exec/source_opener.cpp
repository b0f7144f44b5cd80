#include "core/exec/source_opener.h"

#include <algorithm>

namespace shw {
namespace {

// Decoded elements as a source; errors name the file of the item.
class DecodedSource final : public ByteSource {
 public:
  DecodedSource(std::string name, std::shared_ptr<const Bytes> bytes)
      : name_(std::move(name)), bytes_(std::move(bytes)) {}
  const std::string& name() const override { return name_; }
  std::uint64_t size() const override { return bytes_->size(); }
  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset > bytes_->size() || out.size() > bytes_->size() - offset)
      return fail(ErrorKind::kDamaged, "decodes to too few bytes", {name_});
    std::copy_n(bytes_->begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
    return {};
  }

 private:
  std::string name_;
  std::shared_ptr<const Bytes> bytes_;
};

}  // namespace

SourceOpener::SourceOpener(const Program& program, std::vector<const Checkpoint*> inputs,
                           std::shared_ptr<DecodedItems> decoded,
                           std::shared_ptr<SpillFiles> on_disk, SourceChecksumVerifier* sums)
    : program_(program),
      inputs_(std::move(inputs)),
      decoded_(std::move(decoded)),
      on_disk_(std::move(on_disk)),
      sums_(sums) {}

Status SourceOpener::check_is_open(const ProgramSource& source) const {
  if (source.input < inputs_.size() && inputs_[source.input]->directory() != nullptr) return {};
  return fail(ErrorKind::kUsage, "belongs to a checkpoint that is not open",
              {program_.names[source.file]});
}

Result<std::shared_ptr<const ByteSource>> SourceOpener::open_file(SourceId id) {
  const ProgramSource& source = program_.source(id);
  SHW_CHECK(check_is_open(source));
  if (last_ == nullptr || input_ != source.input || file_ != source.file) {
    SHW_TRY(last_, inputs_[source.input]->directory()->open(program_.names[source.file]));
    input_ = source.input;
    file_ = source.file;
  }
  return last_;
}

Result<std::shared_ptr<const ByteSource>> SourceOpener::open(SourceId id) {
  const ProgramSource& source = program_.source(id);
  if (source.form == SourceForm::kItem) {
    const std::string& path = program_.names[source.file];
    SHW_CHECK(check_is_open(source));
    const Checkpoint& input = *inputs_[source.input];
    if (source.chunk >= input.chunk_count())
      return fail(ErrorKind::kDamaged, "holds no such item", {path, source.offset});
    if (on_disk_ != nullptr && on_disk_->has(id)) return on_disk_->open(id);
    SHW_TRY(auto bytes, decoded_->read(input, ChunkId{source.chunk}, source.length));
    if (bytes->size() == source.length)
      return std::make_shared<DecodedSource>(path, std::move(bytes));
    return fail(ErrorKind::kDamaged, "decodes to another number of bytes than the program says",
                {path, source.offset});
  }
  SHW_TRY(auto file, open_file(id));
  return window(std::move(file), source.offset, source.length);
}

}  // namespace shw
