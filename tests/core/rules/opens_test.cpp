// Files that a check opens: none at Depth::kMetadata, which stays fast on remote file systems and
// with millions of items.
#include <doctest/doctest.h>

#include <filesystem>
#include <mutex>

#include "core/facts/storage/filled.h"
#include "core/formats/open.h"
#include "core/io/source.h"
#include "core/rules/check.h"

using namespace shw;

namespace {

namespace fs = std::filesystem;

// Passes all calls on, and records which files are opened.
class WatchedDirectory final : public Directory {
 public:
  // `extra`: an additional file in the folder.
  explicit WatchedDirectory(std::shared_ptr<const Directory> inner, std::string extra = "",
                            std::string_view text = "")
      : inner_(std::move(inner)), extra_(std::move(extra)) {
    for (char c : text) bytes_.push_back(static_cast<std::byte>(c));
  }
  const std::string& name() const override { return inner_->name(); }
  Result<std::vector<Entry>> list(std::size_t limit) const override { return inner_->list(limit); }
  Entry stat(const std::string& path) const override {
    if (path == extra_ && !extra_.empty()) return {path, EntryKind::kFile, bytes_.size()};
    return inner_->stat(path);
  }
  Result<std::shared_ptr<const ByteSource>> open(const std::string& path) const override {
    {
      std::lock_guard lock(mutex_);  // rules open from several threads
      opened.push_back(path);
    }
    if (path == extra_ && !extra_.empty()) return memory_source(path, bytes_);
    return inner_->open(path);
  }
  mutable std::vector<std::string> opened;

 private:
  std::shared_ptr<const Directory> inner_;
  std::string extra_;
  Bytes bytes_;
  mutable std::mutex mutex_;
};

}  // namespace

TEST_CASE("a check at metadata depth opens no file after the checkpoint was opened") {
  int looked = 0, read = 0;
  for (const auto& entry : fs::recursive_directory_iterator(SHW_TEST_DATA)) {
    auto folder = entry.is_directory() ? open_directory(entry.path().string())
                                       : Result<std::shared_ptr<const Directory>>(nullptr);
    if (!folder || *folder == nullptr) continue;
    auto watched = std::make_shared<WatchedDirectory>(*folder);
    auto checkpoint = open_checkpoint(watched);
    if (!checkpoint) continue;
    CAPTURE(entry.path().string());
    CheckOptions options;
    for (Depth depth : {Depth::kMetadata, Depth::kHeaders}) {
      watched->opened.clear();
      options.depth = depth;
      REQUIRE(check(**checkpoint, options).has_value());
      // config.json and similar files describe the model; they are small and read at any depth.
      std::erase_if(watched->opened, [](const std::string& path) {
        return path.ends_with(".json") || path == "_sharding";
      });
      if (depth == Depth::kMetadata) CHECK(watched->opened == std::vector<std::string>{});
    }
    ++looked;
    read += watched->opened.empty() ? 0 : 1;
  }
  CHECK(looked > 10);
  CHECK(read > 10);
}

TEST_CASE("what a repair recorded is read at metadata depth, by the facts and once") {
  auto inner = open_directory(std::string(SHW_TEST_DATA) + "/torch-2.6/healthy_grid");
  REQUIRE(inner.has_value());
  auto watched = std::make_shared<WatchedDirectory>(*inner, std::string(kLostFile), "{}");
  auto checkpoint = open_checkpoint(watched);
  REQUIRE(checkpoint.has_value());
  watched->opened.clear();
  CheckOptions options;
  options.depth = Depth::kMetadata;
  REQUIRE(check(**checkpoint, options).has_value());
  CHECK(watched->opened == std::vector<std::string>{kLostFile});
}
