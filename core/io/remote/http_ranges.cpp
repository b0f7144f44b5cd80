#include "core/io/remote/http_ranges.h"

#include <fmt/core.h>

namespace shw {
namespace {

tl::unexpected<Error> has_changed(const RemoteFile& file, const std::string& how) {
  return fail(ErrorKind::kDamaged, "changed while it was read: " + how, {file.path},
              "Wait until the checkpoint is written, then start again.");
}

}  // namespace

Status HttpRanges::remember(const RemoteFile& file, const HttpAnswer& answer) {
  std::lock_guard lock(guard_);
  const Version now{answer.etag, answer.modified};
  const auto [known, is_new] = versions_.try_emplace(file.path, now);
  if (is_new) return {};
  const Version& before = known->second;
  if (!before.etag.empty() && !now.etag.empty()) {
    if (before.etag == now.etag) return {};
    return has_changed(file, "its ETag was " + before.etag + " and is " + now.etag);
  }
  if (before.modified == now.modified || before.modified.empty() || now.modified.empty()) return {};
  return has_changed(file, "it was of " + before.modified + " and is of " + now.modified);
}

Status HttpRanges::judge(const HttpRequest& request, const RemoteFile& file,
                         const HttpAnswer& answer) {
  if (answer.status == 412) return has_changed(file, "another version lies there now");
  if (answer.status == 416)
    return has_changed(file,
                       fmt::format("it ends before byte {}", *request.offset + request.out.size()));
  if (answer.status != 206 && answer.status != 200)
    return tl::unexpected<Error>(http_error(request, answer, advice_));
  const std::uint64_t size = answer.total.value_or(file.size);
  if (size != file.size)
    return has_changed(file, fmt::format("it had {} bytes and has {}", file.size, size));
  return remember(file, answer);
}

Status HttpRanges::read(std::span<const RemoteRange> ranges) {
  std::vector<HttpRequest> requests;
  for (const RemoteRange& range : ranges) {
    HttpRequest& request = requests.emplace_back(request_of_(*range.file));
    request.offset = range.offset;
    request.out = range.out;
  }
  std::vector<HttpAnswer> answers(requests.size());
  SHW_CHECK(http_fetch(requests, answers));
  for (std::size_t i = 0; i < ranges.size(); ++i)
    SHW_CHECK(judge(requests[i], *ranges[i].file, answers[i]));
  return {};
}

}  // namespace shw
