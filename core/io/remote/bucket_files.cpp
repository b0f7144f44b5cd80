#include "core/io/remote/bucket_files.h"

#include "core/io/remote/bucket_access.h"
#include "core/io/remote/bucket_page.h"
#include "core/io/remote/http_ranges.h"

namespace shw {
namespace {

constexpr std::size_t kMaxBucketPages = 4'000;

class BucketFiles final : public RemoteFiles {
 public:
  BucketFiles(RemotePlace place, bool is_deep)
      : place_(std::move(place)),
        is_deep_(is_deep),
        access_(place_),
        above_(place_.path.empty() ? "" : place_.path + "/"),
        ranges_([this](const RemoteFile& file) { return object_request(file); }, access_.advice()) {
  }

  bool lists_all() const override { return true; }
  Result<std::optional<RemoteFile>> find(const std::string&) override { return std::nullopt; }
  Status read(std::span<const RemoteRange> ranges) override { return ranges_.read(ranges); }

  Result<std::vector<RemoteFile>> list(std::size_t limit) override {
    std::vector<RemoteFile> files;
    std::string token;
    for (std::size_t page = 0; page < kMaxBucketPages; ++page) {
      SHW_TRY(const BucketPage listed, list_page(access_, place_, {above_, token, is_deep_}));
      for (const BucketObject& object : listed.objects) {
        // A key that ends in a slash is a placeholder for a folder and holds no data.
        if (!object.key.starts_with(above_) || object.key.ends_with('/')) continue;
        if (files.size() == limit) return too_many();
        files.push_back({object.key.substr(above_.size()), object.size, object.etag});
      }
      if (!listed.is_truncated) return files;
      if (listed.next.empty() || listed.next == token)
        return fail(ErrorKind::kDamaged, "the listing does not go on", {place_.shown});
      token = listed.next;
    }
    return too_many();
  }

 private:
  tl::unexpected<Error> too_many() const {
    return fail(ErrorKind::kUnsupported, "holds too many objects", {place_.shown},
                "Name the prefix of one checkpoint.");
  }

  HttpRequest object_request(const RemoteFile& file) const {
    HttpRequest request = access_.request("GET", above_ + file.path, {});
    request.shown = file.path;
    if (!file.version.empty()) request.headers.push_back("If-Match: " + file.version);
    return request;
  }

  RemotePlace place_;
  bool is_deep_;
  BucketAccess access_;
  std::string above_;
  HttpRanges ranges_;
};

}  // namespace

std::unique_ptr<RemoteFiles> bucket_files(RemotePlace place, bool is_deep) {
  return std::make_unique<BucketFiles>(std::move(place), is_deep);
}

Result<bool> is_bucket_object(const RemotePlace& place) {
  BucketAccess access(place);
  // Keys are sorted: the key itself comes before all that begin with it.
  SHW_TRY(const BucketPage page, list_page(access, place, {place.path, {}, false}));
  return !page.objects.empty() && page.objects.front().key == place.path;
}

}  // namespace shw
