#include "core/io/remote/hub_files.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/base/letter_case.h"
#include "core/io/read_whole.h"
#include "core/io/remote/http_ranges.h"
#include "core/io/remote/remote_environment.h"

namespace shw {
namespace {

using Json = nlohmann::json;

// Limit of one page of the listing, which holds 1,000 files of about 300 bytes.
constexpr std::uint64_t kMaxHubPage = std::uint64_t{64} << 20;
constexpr std::size_t kMaxHubPages = 10'000;

constexpr const char* kHubAdvice =
    "Check the spelling. For a private or gated repository set HF_TOKEN, or run `hf auth login`.";

// The token from HF_TOKEN, or from the file that `hf auth login` writes.
std::string hub_token() {
  std::string token = environment_text("HF_TOKEN");
  if (token.empty()) token = environment_text("HUGGING_FACE_HUB_TOKEN");
  if (!token.empty()) return token;
  std::string path = environment_text("HF_TOKEN_PATH");
  if (path.empty()) {
    const std::string home = environment_text("HF_HOME");
    path = (home.empty() ? home_folder() + "/.cache/huggingface" : home) + "/token";
  }
  return first_line_of(path);
}

std::string hub_endpoint() {
  std::string endpoint = environment_text("HF_ENDPOINT");
  if (endpoint.empty()) endpoint = "https://huggingface.co";
  while (endpoint.ends_with('/')) endpoint.pop_back();
  return endpoint;
}

// The next page, from an answer's header Link: <URL>; rel="next". Empty if on another server.
std::string next_page(const std::string& link, const std::string& endpoint) {
  if (link.find("rel=\"next\"") == link.npos || !link.starts_with('<')) return {};
  std::string url = link.substr(1, link.find('>') - 1);
  return url.starts_with(endpoint + "/") ? url : std::string();
}

std::string text_member(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

bool is_commit(const std::string& text) {
  return text.size() >= 7 && text.size() <= 64 &&
         text.find_first_not_of("0123456789abcdef") == text.npos;
}

class HubFiles final : public RemoteFiles {
 public:
  HubFiles(RemotePlace place, bool is_deep)
      : place_(std::move(place)),
        is_deep_(is_deep),
        endpoint_(hub_endpoint()),
        token_(hub_token()),
        ranges_([this](const RemoteFile& file) { return file_request(file); }, kHubAdvice) {}

  bool lists_all() const override { return true; }
  Status read(std::span<const RemoteRange> ranges) override { return ranges_.read(ranges); }
  Result<std::optional<RemoteFile>> find(const std::string&) override { return std::nullopt; }

  Result<std::vector<RemoteFile>> list(std::size_t limit) override {
    SHW_CHECK(resolve_revision());
    std::vector<RemoteFile> files;
    std::string url = api_url("tree/" + commit_) +
                      (place_.path.empty() ? "" : "/" + percent_encoded(place_.path)) +
                      (is_deep_ ? "?recursive=true" : "");
    for (std::size_t page = 0; !url.empty(); ++page) {
      if (page == kMaxHubPages)
        return fail(ErrorKind::kUnsupported, "the listing does not end", {place_.shown});
      SHW_TRY(const HttpAnswer answer, ask(url));
      SHW_CHECK(read_page(answer, limit, files));
      url = next_page(answer.link, endpoint_);
    }
    return files;
  }

 private:
  std::string api_url(const std::string& what) const {
    return endpoint_ + "/api/models/" + percent_encoded(place_.host) + "/" + what;
  }

  void sign(HttpRequest& request) const {
    if (!token_.empty()) request.headers.push_back("Authorization: Bearer " + token_);
  }

  HttpRequest file_request(const RemoteFile& file) const {
    HttpRequest request;
    request.url = endpoint_ + "/" + percent_encoded(place_.host) + "/resolve/" + commit_ + "/" +
                  percent_encoded(joined_remote(place_.path, file.path));
    request.shown = file.path;
    sign(request);
    return request;
  }

  Result<HttpAnswer> ask(const std::string& url) const {
    HttpRequest request;
    request.url = url;
    request.shown = place_.shown;
    request.most = kMaxHubPage;
    sign(request);
    SHW_TRY(HttpAnswer answer, http_fetch(request));
    if (answer.status != 200) return tl::unexpected<Error>(http_error(request, answer, kHubAdvice));
    return answer;
  }

  static Json tree_of(const HttpAnswer& answer) { return parse_json<Json>(body_text(answer)).tree; }

  tl::unexpected<Error> no_listing_error() const {
    return fail(ErrorKind::kDamaged, "the hub answers with something that is not a listing",
                {place_.shown}, "Check that HF_ENDPOINT points to a hub.");
  }

  Status resolve_revision() {
    const std::string revision = place_.revision.empty() ? "main" : place_.revision;
    SHW_TRY(const HttpAnswer answer, ask(api_url("revision/" + percent_encoded(revision, false))));
    const Json tree = tree_of(answer);
    if (!tree.is_object()) return no_listing_error();
    commit_ = text_member(tree, "sha");
    if (!is_commit(commit_)) return no_listing_error();
    return {};
  }

  Status read_page(const HttpAnswer& answer, std::size_t limit, std::vector<RemoteFile>& files) {
    const Json tree = tree_of(answer);
    if (!tree.is_array()) return no_listing_error();
    const std::string above = place_.path.empty() ? "" : place_.path + "/";
    for (const Json& entry : tree) {
      if (!entry.is_object()) return no_listing_error();
      std::string path = text_member(entry, "path");
      const auto size = entry.find("size");
      if (text_member(entry, "type") != "file" || !path.starts_with(above)) continue;
      if (size == entry.end() || !size->is_number_unsigned()) return no_listing_error();
      if (files.size() == limit)
        return fail(ErrorKind::kUnsupported, "holds too many files", {place_.shown});
      RemoteFile file{path.substr(above.size()), size->get<std::uint64_t>()};
      file.version = text_member(entry, "oid");
      files.push_back(std::move(file));
    }
    return {};
  }

  RemotePlace place_;
  bool is_deep_;
  std::string endpoint_, token_, commit_;
  HttpRanges ranges_;
};

}  // namespace

std::unique_ptr<RemoteFiles> hub_files(RemotePlace repository, bool is_deep) {
  return std::make_unique<HubFiles>(std::move(repository), is_deep);
}

}  // namespace shw
