#include "core/io/remote/bucket_page.h"

#include <utility>

namespace shw {
namespace {

// Limit for one answer: a page lists 1,000 objects, whose keys have at most 1,024 bytes.
constexpr std::uint64_t kMaxBucketPage = std::uint64_t{16} << 20;

Result<HttpAnswer> request_page(const BucketAccess& access, const PageRequest& asked) {
  QueryPairs query = {{"list-type", "2"}, {"prefix", asked.prefix}, {"encoding-type", "url"}};
  if (!asked.is_deep) query.emplace_back("delimiter", "/");
  if (!asked.token.empty()) query.emplace_back("continuation-token", asked.token);
  HttpRequest request = access.request("GET", "", std::move(query));
  request.most = kMaxBucketPage;
  return http_fetch(std::move(request));
}

// The region that the answer sends to; empty if the bucket is in the region that was asked.
std::string other_region(const BucketAccess& access, const HttpAnswer& answer) {
  constexpr std::size_t kMaxRegion = 40;
  if (answer.status != 301 && answer.status != 307 && answer.status != 400) return {};
  std::string region = answer.region;
  if (region.empty()) region = xml_text(body_text(answer), "Region");
  return region == access.region() || region.size() >= kMaxRegion ? std::string() : region;
}

}  // namespace

Result<BucketPage> list_page(BucketAccess& access, const RemotePlace& place,
                             const PageRequest& asked) {
  SHW_TRY(HttpAnswer answer, request_page(access, asked));
  // Once: a server that names another region each time would never end.
  if (const std::string region = other_region(access, answer); !region.empty()) {
    access.move_to(region);
    SHW_TRY(answer, request_page(access, asked));
  }
  const std::string_view text = body_text(answer);
  if (answer.status != 200) {
    HttpRequest request;
    request.shown = place.shown;
    return tl::unexpected<Error>(http_error(request, answer, access.advice()));
  }
  auto page = parse_bucket_page(text, xml_text(text, "EncodingType") == "url");
  if (!page) page.error().place.file = place.shown;
  return page;
}

}  // namespace shw
