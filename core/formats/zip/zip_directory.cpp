#include "core/formats/zip/zip_directory.h"

#include <map>
#include <optional>
#include <utility>

#include "core/formats/zip/zip.h"

namespace shw {
namespace {

class ZipDirectory final : public Directory {
 public:
  ZipDirectory(ZipReader zip, std::string name) : zip_(std::move(zip)), name_(std::move(name)) {
    for (const ZipEntry& entry : zip_.entries()) {
      if (is_safe_relative_path(entry.name) && !entry.name.ends_with('/'))
        records_.emplace(entry.name, &entry);
    }
  }
  ZipDirectory(const ZipDirectory&) = delete;
  ZipDirectory& operator=(const ZipDirectory&) = delete;

  const std::string& name() const override { return name_; }
  Result<std::vector<Entry>> list(std::size_t limit) const override {
    if (records_.size() > limit)
      return fail(ErrorKind::kUnsupported, "holds more files than the limit", {name_});
    std::vector<Entry> entries;
    for (const auto& [path, record] : records_) entries.push_back(entry_of_record(*record));
    return entries;
  }
  Entry stat(const std::string& path) const override {
    if (auto found = records_.find(path); found != records_.end())
      return entry_of_record(*found->second);
    const auto below = records_.lower_bound(path + "/");
    const bool is_folder = below != records_.end() && below->first.starts_with(path + "/");
    return {path, is_folder ? EntryKind::kDirectory : EntryKind::kMissing};
  }
  Result<std::shared_ptr<const ByteSource>> open(const std::string& path) const override {
    auto found = records_.find(path);
    if (found == records_.end())
      return fail(ErrorKind::kIo, "there is no such file in the archive", {path});
    return zip_.source_of(*found->second);
  }

 private:
  static Entry entry_of_record(const ZipEntry& record) {
    return {record.name, EntryKind::kFile, record.length, 0, record.stored_length};
  }

  ZipReader zip_;
  std::string name_;
  std::map<std::string, const ZipEntry*> records_;  // of zip_
};

}  // namespace

Result<std::shared_ptr<const Directory>> open_zip_directory(
    std::shared_ptr<const ByteSource> source, std::string name) {
  const std::uint64_t length = source->size();
  SHW_TRY(ZipReader zip, ZipReader::open(std::move(source), 0, length));
  return std::make_shared<const ZipDirectory>(std::move(zip), std::move(name));
}

}  // namespace shw
