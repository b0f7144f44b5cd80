#include "core/io/remote/bucket_files.h"

#include "core/io/remote/bucket_access.h"
#include "core/io/remote/bucket_listing.h"
#include "core/io/remote/http_ranges.h"

namespace shw {
namespace {

// A page lists 1,000 objects, whose keys have at most 1,024 bytes.
constexpr std::uint64_t kMostBucketPage = std::uint64_t{16} << 20;
constexpr std::size_t kMostBucketPages = 4'000;

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
    for (std::size_t page = 0; page < kMostBucketPages; ++page) {
      SHW_TRY(const BucketPage listed, list_page(token));
      for (const BucketObject& object : listed.objects) {
        // A key that ends in a slash stands for a folder and holds nothing.
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

  Result<BucketPage> list_page(const std::string& token) {
    SHW_TRY(HttpAnswer answer, ask_page(token));
    const std::string_view text(reinterpret_cast<const char*>(answer.body.data()),
                                answer.body.size());
    std::string region = answer.region;
    if (region.empty()) region = xml_text(text, "Region");
    const bool elsewhere = answer.status == 301 || answer.status == 307 || answer.status == 400;
    if (elsewhere && !region.empty() && region != access_.region() && region.size() < 40) {
      access_.move_to(region);
      return list_page(token);
    }
    if (answer.status != 200) {
      HttpRequest request;
      request.shown = place_.shown;
      return tl::unexpected<Error>(http_error(request, answer, access_.advice()));
    }
    auto page = parse_bucket_page(text, xml_text(text, "EncodingType") == "url");
    if (!page) page.error().place.file = place_.shown;
    return page;
  }

  Result<HttpAnswer> ask_page(const std::string& token) const {
    QueryPairs query = {{"list-type", "2"}, {"prefix", above_}, {"encoding-type", "url"}};
    if (!is_deep_) query.emplace_back("delimiter", "/");
    if (!token.empty()) query.emplace_back("continuation-token", token);
    HttpRequest request = access_.request("GET", "", std::move(query));
    request.most = kMostBucketPage;
    return http_fetch(std::move(request));
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

}  // namespace shw
