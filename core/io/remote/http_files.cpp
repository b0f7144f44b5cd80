#include "core/io/remote/http_files.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/json.h"
#include "core/io/remote/http_ranges.h"

namespace shw {
namespace {

// File names that formats probe in a folder before they know the names of data files.
constexpr std::array<std::string_view, 16> kUsualNames = {
    ".metadata",
    "model.safetensors.index.json",
    "diffusion_pytorch_model.safetensors.index.json",
    "consolidated.safetensors.index.json",
    "pytorch_model.bin.index.json",
    "model.safetensors",
    "diffusion_pytorch_model.safetensors",
    "consolidated.safetensors",
    "adapter_model.safetensors",
    "adapter_config.json",
    "pytorch_model.bin",
    "config.json",
    "common.pt",
    "metadata.json",
    "model.pt",
    "consolidated.00.pth"};
constexpr std::string_view kIndexEnding = ".index.json";
// Size limit of an index: one of 4 million tensors takes 400 MB.
constexpr std::uint64_t kMaxHttpIndex = std::uint64_t{512} << 20;

constexpr const char* kHttpAdvice =
    "Check that the URL is right and readable without a login; put a password into ~/.netrc.";

std::string url_of(const RemotePlace& place, const std::string& path) {
  std::string url = place.scheme + "://" + place.host + "/" + place.path;
  if (!path.empty()) url = joined_remote(url, percent_encoded(path));
  return place.query.empty() ? url : url + "?" + place.query;
}

HttpRequest http_request(const RemotePlace& place, const std::string& path) {
  HttpRequest request;
  request.url = url_of(place, path);
  request.shown = path.empty() ? place.shown : path;
  request.userpwd = percent_decoded(place.userinfo);
  return request;
}

HttpRequest head_request(const RemotePlace& place, const std::string& path) {
  HttpRequest request = http_request(place, path);
  request.most = kRemoteBlock;
  request.head_only = true;
  return request;
}

// Converts the answer to head_request() into a file; nullopt if the file does not exist.
Result<std::optional<RemoteFile>> file_of(const HttpRequest& request, const HttpAnswer& answer,
                                          const std::string& path) {
  if (answer.status == 404 || answer.status == 410) return std::nullopt;
  RemoteFile file{path};
  file.version = answer.etag;
  // Servers answer 416 to a range request for an empty file.
  if (answer.status == 416 && answer.total.value_or(0) == 0) return file;
  if (answer.status != 200 && answer.status != 206)
    return tl::unexpected<Error>(http_error(request, answer, kHttpAdvice));
  file.size = answer.status == 206 ? answer.total.value_or(0) : answer.body.size();
  const std::uint64_t came = answer.body.size();
  if ((answer.status == 206 && (!answer.total || answer.first != 0U)) ||
      came != std::min(file.size, kRemoteBlock))
    return fail(ErrorKind::kDamaged, "the server does not say how long the file is",
                {request.shown});
  file.head = answer.body;
  return file;
}

class HttpFiles final : public RemoteFiles {
 public:
  HttpFiles(RemotePlace place, std::string named)
      : place_(std::move(place)),
        named_(std::move(named)),
        ranges_([this](const RemoteFile& file) { return http_request(place_, file.path); },
                kHttpAdvice) {}

  bool lists_all() const override { return false; }
  Status read(std::span<const RemoteRange> ranges) override { return ranges_.read(ranges); }

  Result<std::vector<RemoteFile>> list(std::size_t limit) override {
    SHW_CHECK(probe_missing_file_answer());
    std::vector<std::string> names(kUsualNames.begin(), kUsualNames.end());
    if (!named_.empty() && std::find(names.begin(), names.end(), named_) == names.end())
      names.push_back(named_);
    SHW_TRY(std::vector<RemoteFile> files, find_all(names));
    if (files.empty())
      return fail(
          ErrorKind::kIo,
          missing_status_ == 404
              ? std::string("no checkpoint was found at the URL")
              : "no checkpoint was found at the URL, or access is denied: the server answers " +
                    std::to_string(missing_status_) + " to both",
          {place_.shown},
          "HTTP lists no folders: name a file, such as a .safetensors file or its "
          "model.safetensors.index.json.");
    std::set<std::string> more;
    for (const RemoteFile& file : files) {
      if (!file.path.ends_with(kIndexEnding)) continue;
      SHW_TRY(const std::vector<std::string> listed, names_in_index(file));
      more.insert(listed.begin(), listed.end());
    }
    for (const RemoteFile& file : files) more.erase(file.path);
    if (more.size() > limit)
      return fail(ErrorKind::kUnsupported, "an index names too many files", {place_.shown});
    SHW_TRY(std::vector<RemoteFile> shards, find_all({more.begin(), more.end()}));
    std::move(shards.begin(), shards.end(), std::back_inserter(files));
    return files;
  }

  Result<std::optional<RemoteFile>> find(const std::string& path) override {
    SHW_TRY(std::vector<RemoteFile> files, find_all({path}));
    if (files.empty()) return std::nullopt;
    return std::move(files.front());
  }

 private:
  // Learns how the server answers for a missing file: some servers send 403, some send a page for
  // every name.
  Status probe_missing_file_answer() {
    HttpRequest request = head_request(place_, ".shardwright-is-not-there");
    SHW_TRY(const HttpAnswer answer, http_fetch(request));
    missing_status_ = answer.status;
    if (answer.status >= 400 && answer.status < 500 && answer.status != 401 && answer.status != 429)
      return {};
    if (answer.status >= 300)
      return tl::unexpected<Error>(http_error(request, answer, kHttpAdvice));
    return fail(ErrorKind::kUnsupported, "the server sends a page for names that do not exist",
                {place_.shown}, kHttpAdvice);
  }

  Result<std::vector<RemoteFile>> find_all(const std::vector<std::string>& names) {
    // 256 requests at once: the first 64 KiB of each file take 16 MiB.
    constexpr std::size_t kHeadsPerRound = 256;
    std::vector<RemoteFile> files;
    for (std::size_t begin = 0; begin < names.size(); begin += kHeadsPerRound) {
      const std::size_t count = std::min(kHeadsPerRound, names.size() - begin);
      std::vector<HttpRequest> requests;
      for (std::size_t i = 0; i < count; ++i)
        requests.push_back(head_request(place_, names[begin + i]));
      std::vector<HttpAnswer> answers(count);
      SHW_CHECK(http_fetch(requests, answers));
      for (std::size_t i = 0; i < count; ++i) {
        if (answers[i].status == missing_status_) continue;
        SHW_TRY(auto file, file_of(requests[i], answers[i], names[begin + i]));
        if (!file) continue;
        SHW_CHECK(ranges_.remember(*file, answers[i]));
        files.push_back(std::move(*file));
      }
    }
    return files;
  }

  // The file names in "weight_map". Errors in the index are reported by the format reader, not
  // here.
  Result<std::vector<std::string>> names_in_index(const RemoteFile& file) {
    std::vector<std::string> names;
    if (file.size > kMaxHttpIndex) return names;
    Bytes bytes(file.size);
    const RemoteRange range{&file, 0, bytes};
    if (file.size != 0) SHW_CHECK(read({&range, 1}));
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const auto parsed = parse_json<nlohmann::json>(text);
    if (!parsed.tree.is_object()) return names;
    const auto map = parsed.tree.find("weight_map");
    if (map == parsed.tree.end() || !map->is_object()) return names;
    std::set<std::string> found;
    for (const auto& [tensor, path] : map->items()) {
      if (path.is_string() && is_safe_relative_path(path.get_ref<const std::string&>()))
        found.insert(path.get<std::string>());
    }
    return std::vector<std::string>(found.begin(), found.end());
  }

  RemotePlace place_;
  std::string named_;
  long missing_status_ = 404;
  HttpRanges ranges_;
};

}  // namespace

std::unique_ptr<RemoteFiles> http_files(RemotePlace folder, std::string named) {
  return std::make_unique<HttpFiles>(std::move(folder), std::move(named));
}

Result<bool> is_http_file(const RemotePlace& place) {
  HttpRequest request = head_request(place, "");
  SHW_TRY(const HttpAnswer answer, http_fetch(request));
  if (answer.status == 404 || answer.status == 403 || answer.status == 410) return false;
  if (answer.type.starts_with("text/html")) return false;  // the server's listing page of a folder
  SHW_TRY(const auto file, file_of(request, answer, place.path));
  return file.has_value();
}

}  // namespace shw
