#include "core/io/remote/bucket_page.h"

#include <utility>

namespace shw {
namespace {

// Limit for one answer: a page lists 1,000 objects, whose keys have at most 1,024 bytes.
constexpr std::uint64_t kMostBucketPage = std::uint64_t{16} << 20;

Result<HttpAnswer> request_page(const BucketAccess& access, const PageRequest& asked) {
  QueryPairs query = {{"list-type", "2"}, {"prefix", asked.prefix}, {"encoding-type", "url"}};
  if (!asked.is_deep) query.emplace_back("delimiter", "/");
  if (!asked.token.empty()) query.emplace_back("continuation-token", asked.token);
  HttpRequest request = access.request("GET", "", std::move(query));
  request.most = kMostBucketPage;
  return http_fetch(std::move(request));
}

}  // namespace

Result<BucketPage> list_page(BucketAccess& access, const RemotePlace& place,
                             const PageRequest& asked) {
  SHW_TRY(HttpAnswer answer, request_page(access, asked));
  const std::string_view text(reinterpret_cast<const char*>(answer.body.data()),
                              answer.body.size());
  std::string region = answer.region;
  if (region.empty()) region = xml_text(text, "Region");
  const bool elsewhere = answer.status == 301 || answer.status == 307 || answer.status == 400;
  if (elsewhere && !region.empty() && region != access.region() && region.size() < 40) {
    access.move_to(region);
    return list_page(access, place, asked);
  }
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
