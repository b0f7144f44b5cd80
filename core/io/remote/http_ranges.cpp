#include "core/io/remote/http_ranges.h"

#include <fmt/core.h>
#include <string_view>

namespace shw {
namespace {

tl::unexpected<Error> file_changed_error(const RemoteFile& file, const std::string& how) {
  return fail(ErrorKind::kDamaged, "changed while it was read: " + how, {file.path},
              "Wait until the checkpoint is written, then start again.");
}

// "https://host:port"
std::string_view server_of(std::string_view url) {
  const std::size_t scheme = url.find("://");
  return scheme == url.npos ? url : url.substr(0, url.find_first_of("/?#", scheme + 3));
}

}  // namespace

Status HttpRanges::remember(const RemoteFile& file, const HttpAnswer& answer) {
  std::lock_guard lock(guard_);
  if (!answer.redirected_to.empty()) redirects_[file.path] = answer.redirected_to;
  const Version now{answer.etag, answer.modified};
  const auto [known, is_new] = versions_.try_emplace(file.path, now);
  if (is_new) return {};
  const Version& before = known->second;
  if (!before.etag.empty() && !now.etag.empty()) {
    if (before.etag == now.etag) return {};
    return file_changed_error(file, "its ETag was " + before.etag + " and is " + now.etag);
  }
  if (before.modified == now.modified || before.modified.empty() || now.modified.empty()) return {};
  return file_changed_error(file, "it was of " + before.modified + " and is of " + now.modified);
}

Status HttpRanges::judge(const HttpRequest& request, const RemoteFile& file,
                         const HttpAnswer& answer) {
  if (answer.status == 412) return file_changed_error(file, "another version is there now");
  if (answer.status == 416)
    return file_changed_error(
        file, fmt::format("it ends before byte {}", *request.offset + request.out.size()));
  if (answer.status != 206 && answer.status != 200)
    return tl::unexpected<Error>(http_error(request, answer, advice_));
  const std::uint64_t size = answer.total.value_or(file.size);
  if (size != file.size)
    return file_changed_error(file, fmt::format("it had {} bytes and has {}", file.size, size));
  return remember(file, answer);
}

HttpRequest HttpRanges::request_for(const RemoteRange& range) {
  HttpRequest request = request_of_(*range.file);
  request.offset = range.offset;
  request.out = range.out;
  std::lock_guard lock(guard_);
  if (const auto known = redirects_.find(range.file->path); known != redirects_.end()) {
    // A password or token is for the server that was named, not for another one.
    if (server_of(known->second) != server_of(request.url)) {
      request.headers.clear();
      request.userpwd.clear();
      request.sign = nullptr;
    }
    request.url = known->second;
  }
  return request;
}

// True if the store refuses a URL that the server gave earlier; it is asked for a new one then.
bool HttpRanges::forget_expired(const RemoteFile& file, const HttpRequest& request,
                                const HttpAnswer& answer) {
  const bool is_refused = answer.status == 400 || answer.status == 401 || answer.status == 403 ||
                          answer.status == 404 || answer.status == 410;
  if (!is_refused) return false;
  std::lock_guard lock(guard_);
  const auto known = redirects_.find(file.path);
  if (known == redirects_.end() || known->second != request.url)
    return request.url != request_of_(file).url;
  redirects_.erase(known);
  return true;
}

Status HttpRanges::read(std::span<const RemoteRange> ranges) {
  std::vector<HttpRequest> requests;
  for (const RemoteRange& range : ranges) requests.push_back(request_for(range));
  std::vector<HttpAnswer> answers(requests.size());
  SHW_CHECK(http_fetch(requests, answers));
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (!forget_expired(*ranges[i].file, requests[i], answers[i])) continue;
    requests[i] = request_for(ranges[i]);
    SHW_TRY(answers[i], http_fetch(requests[i]));
  }
  for (std::size_t i = 0; i < ranges.size(); ++i)
    SHW_CHECK(judge(requests[i], *ranges[i].file, answers[i]));
  return {};
}

}  // namespace shw
