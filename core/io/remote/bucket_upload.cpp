#include "core/io/remote/bucket_upload.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "core/base/hash.h"
#include "core/base/words.h"
#include "core/io/read_whole.h"
#include "core/io/remote/bucket_page.h"

namespace shw {
namespace {

// S3 requires parts of at least 5 MiB, and at most 10,000 of them.
constexpr std::uint64_t kPartBytes = std::uint64_t{16} << 20, kMaxParts = 10'000;
// In memory: of a file of 5 TB a part has 500 MB.
constexpr std::size_t kPartsAtOnce = 4;
constexpr std::uint64_t kMaxPartBytes = std::uint64_t{256} << 20;
// The server joins thousands of parts before its answer is complete.
constexpr long kJoiningPatience = 15;
constexpr std::size_t kMaxFiles = 1'000'000;
constexpr std::uint64_t kMaxAnswer = std::uint64_t{1} << 20;
constexpr std::size_t kMaxUploadPages = 4'000;
// Object that exists below the prefix during an upload: a hash of the names, sizes and times of the
// sent files. It allows an interrupted upload to be resumed.
constexpr std::string_view kUploadNote = ".shardwright-upload";

// 1 for a file by which a loader recognises a checkpoint, 2 for one that names a step of a run,
// which must be whole before; 0 for other files.
int marker_rank(const std::string& path) {
  const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
  if (name == "latest_checkpointed_iteration.txt" || name == "latest") return 2;
  const bool is_marker = name == ".metadata" || name == "metadata.json" ||
                         name == "certificate.json" || name == "integrity.json" ||
                         name.ends_with(".index.json") || name == "model_index.json";
  return is_marker ? 1 : 0;
}

std::string above(const RemotePlace& place) {
  return place.path.empty() ? "" : place.path + "/";
}

std::string hash_of_upload_list(const std::vector<Entry>& files) {
  RunningHash hash;
  for (const Entry& file : files) {
    const std::string line = fmt::format("{} {} {}\n", file.size, file.modified_ns, file.path);
    hash.add(std::as_bytes(std::span(line)));
  }
  return "shardwright upload of " + hash.text() + "\n";
}

Error target_not_empty_error(const RemotePlace& place, bool has_note) {
  if (has_note)
    return {
        ErrorKind::kUsage,
        "holds a part of another upload, or of this one before its folder changed",
        {place.shown},
        "`shardwright upload FOLDER " + place.shown +
            "` goes on with it from the folder that it was sent from. Or give an empty prefix."};
  return {ErrorKind::kUsage,
          "already holds objects, which are never overwritten",
          {place.shown},
          "Give an empty prefix."};
}

// The listing also tells `access` the bucket's region, before anything is sent.
Status check_target_is_empty(const RemotePlace& place, BucketAccess& access) {
  SHW_TRY(const BucketPage page, list_page(access, place, {above(place)}));
  if (page.objects.empty()) return {};
  const std::string note = above(place) + std::string(kUploadNote);
  return tl::unexpected<Error>(target_not_empty_error(
      place, std::any_of(page.objects.begin(), page.objects.end(),
                         [&](const BucketObject& one) { return one.key == note; })));
}

class BucketUpload {
 public:
  BucketUpload(const Directory& folder, RemotePlace place, BucketAccess& access, Progress* progress)
      : folder_(folder),
        place_(std::move(place)),
        access_(access),
        above_(above(place_)),
        progress_(progress) {}

  Result<Uploaded> send() {
    SHW_TRY(std::vector<Entry> listed, folder_.list(kMaxFiles));
    for (const Entry& entry : listed) {
      if (entry.kind == EntryKind::kDanglingLink)
        return fail(ErrorKind::kDamaged, "is a broken link", {entry.path},
                    "Restore its target, or delete the link: nothing is uploaded before that.");
    }
    std::erase_if(listed, [](const Entry& entry) { return entry.kind != EntryKind::kFile; });
    const std::vector<Entry> files = upload_order(std::move(listed));
    Uploaded sent;
    for (const Entry& file : files) sent.bytes += file.size;
    sent.files = files.size();
    SHW_TRY(const Objects there, begin(files));
    if (progress_ != nullptr) progress_->begin(Phase::kCopying, sent.bytes, true);
    for (const Entry& file : files) {
      if (is_cancelled(progress_)) return cancelled_error();
      if (there.contains(above_ + file.path)) {
        ++sent.kept;
        if (progress_ != nullptr) progress_->add(file.size);
        continue;
      }
      SHW_TRY(auto source, folder_.open(file.path));
      SHW_CHECK(file.size <= kPartBytes ? send_whole(*source, file.path)
                                        : send_in_parts(*source, file.path));
    }
    SHW_CHECK(check_sizes(files));
    if (auto gone = ask(request_for("DELETE", std::string(kUploadNote), {})); !gone) {
      Error error = gone.error();
      error.message += " (every file is sent; only this note of the upload is left over)";
      return tl::unexpected<Error>(std::move(error));
    }
    return sent;
  }

 private:
  using Objects = std::map<std::string, std::uint64_t>;  // sizes by key

  // Returns the objects that an interrupted upload of these files has already sent; empty if the
  // prefix is unused.
  Result<Objects> begin(const std::vector<Entry>& files) {
    const std::string note = hash_of_upload_list(files);
    SHW_TRY(Objects there, list_uploaded_objects());
    if (there.empty()) {
      HttpRequest put = request_for("PUT", std::string(kUploadNote), {});
      put.upload = std::as_bytes(std::span(note));
      SHW_CHECK(ask(std::move(put)));
      return there;
    }
    if (there.erase(above_ + std::string(kUploadNote)) == 0)
      return tl::unexpected<Error>(target_not_empty_error(place_, false));
    SHW_TRY(const HttpAnswer kept, ask(request_for("GET", std::string(kUploadNote), {})));
    if (body_text(kept) != note) return tl::unexpected<Error>(target_not_empty_error(place_, true));
    SHW_CHECK(check_objects_are_of_upload(there, files));
    for (const Entry& file : files) {
      if (file.size > kPartBytes && !there.contains(above_ + file.path))
        abort_other_uploads(file.path);
    }
    return there;
  }

  Status check_objects_are_of_upload(const Objects& there, const std::vector<Entry>& files) const {
    Objects ours;
    for (const Entry& file : files) ours[above_ + file.path] = file.size;
    for (const auto& [key, size] : there) {
      const auto found = ours.find(key);
      if (found == ours.end() || found->second != size)
        return fail(ErrorKind::kUsage, "is in the bucket, and is not a file that this upload sends",
                    {key.substr(above_.size())},
                    "Delete it there, or name a prefix below which nothing is.");
    }
    return {};
  }

  // Deletes the invisible parts of a killed upload, which cost money, except those of the upload
  // `kept`. If listing them is not permitted, they are left to the bucket's lifecycle rules.
  void abort_other_uploads(const std::string& path, const std::string& kept = {}) {
    HttpRequest list = access_.request("GET", "", {{"prefix", above_ + path}, {"uploads", ""}});
    list.shown = path;
    list.most = kMaxAnswer;
    const auto answer = ask(std::move(list));
    if (!answer) return;
    std::string_view rest = body_text(*answer);
    for (std::size_t at = rest.find("<Upload>"); at != rest.npos; at = rest.find("<Upload>")) {
      rest.remove_prefix(at + 1);
      const std::string id = xml_text(rest, "UploadId");
      if (xml_text(rest, "Key") == above_ + path && !id.empty() && id != kept)
        (void)ask(request_for("DELETE", path, {{"uploadId", id}}));
    }
  }

  Result<HttpAnswer> ask(HttpRequest request) const {
    HttpAnswer answer;
    SHW_CHECK(http_fetch({&request, 1}, {&answer, 1}));
    SHW_CHECK(check_answer(request, answer));
    return answer;
  }

  HttpRequest request_for(const std::string& method, const std::string& path,
                          QueryPairs query) const {
    HttpRequest request = access_.request(method, above_ + path, std::move(query));
    request.shown = path;
    request.most = kMaxAnswer;
    return request;
  }

  Status check_answer(const HttpRequest& request, const HttpAnswer& answer) const {
    if (answer.status == 200 || answer.status == 204) return {};
    return tl::unexpected<Error>(http_error(request, answer, access_.advice()));
  }

  Status send_whole(const ByteSource& source, const std::string& path) {
    SHW_TRY(const Bytes bytes, read_bytes(source, 0, source.size()));
    HttpRequest request = request_for("PUT", path, {});
    request.upload = bytes;
    SHW_CHECK(ask(std::move(request)));
    if (progress_ != nullptr) progress_->add(bytes.size());
    return {};
  }

  Status send_in_parts(const ByteSource& source, const std::string& path) {
    HttpRequest begin = request_for("POST", path, {{"uploads", ""}});
    begin.needs_exact_try_count = true;
    SHW_TRY(const HttpAnswer answer, ask(std::move(begin)));
    const std::string id = xml_text(body_text(answer), "UploadId");
    if (id.empty())
      return fail(ErrorKind::kIo, "the server's answer does not begin an upload", {path});
    // A lost answer has begun an upload too.
    if (answer.tries > 1) abort_other_uploads(path, id);
    Status done = send_parts(source, path, id);
    if (done) return done;
    // Aborts the upload: stored parts cost money until then.
    (void)ask(request_for("DELETE", path, {{"uploadId", id}}));
    return done;
  }

  Status send_parts(const ByteSource& source, const std::string& path, const std::string& id) {
    const std::uint64_t size = source.size();
    const std::uint64_t part = std::max(kPartBytes, (size + kMaxParts - 1) / kMaxParts);
    const auto at_once = std::clamp<std::uint64_t>(kMaxPartBytes / part, 1, kPartsAtOnce);
    std::string complete = "<CompleteMultipartUpload>";
    for (std::uint64_t at = 0, number = 1; at < size;) {
      std::vector<Bytes> held;
      std::vector<HttpRequest> requests;
      for (std::size_t i = 0; i < at_once && at < size; ++i, ++number) {
        if (is_cancelled(progress_)) return cancelled_error();
        SHW_TRY(Bytes bytes, read_bytes(source, at, std::min(part, size - at)));
        at += bytes.size();
        held.push_back(std::move(bytes));
        requests.push_back(
            request_for("PUT", path, {{"partNumber", std::to_string(number)}, {"uploadId", id}}));
      }
      for (std::size_t i = 0; i < held.size(); ++i) requests[i].upload = held[i];
      std::vector<HttpAnswer> answers(requests.size());
      SHW_CHECK(http_fetch(requests, answers));
      for (std::size_t i = 0; i < answers.size(); ++i) {
        SHW_CHECK(check_answer(requests[i], answers[i]));
        if (answers[i].etag.empty())
          return fail(ErrorKind::kIo, "the server took a part and gave no ETag", {path});
        complete += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>",
                                number - answers.size() + i, answers[i].etag);
        if (progress_ != nullptr) progress_->add(held[i].size());
      }
    }
    return complete_multipart_upload(path, id, size, complete + "</CompleteMultipartUpload>");
  }

  // After a lost answer the parts may have been joined although the server knows the upload no
  // more: then the object has all bytes.
  Status complete_multipart_upload(const std::string& path, const std::string& id,
                                   std::uint64_t size, const std::string& complete) {
    HttpRequest request = request_for("POST", path, {{"uploadId", id}});
    request.upload = std::as_bytes(std::span(complete));
    request.patience = kJoiningPatience;
    const auto answer = ask(std::move(request));
    // The server answers 200 before it joins the parts; the body then reports errors. The name of
    // its outer element differs between servers.
    const std::string_view body = answer ? body_text(*answer) : std::string_view();
    if (!xml_text(body, "ETag").empty() && xml_text(body, "Code").empty()) return {};
    if (!answer && answer.error().kind == ErrorKind::kCancelled)
      return tl::unexpected<Error>(answer.error());
    if (has_object(path, size)) return {};
    if (!answer) return tl::unexpected<Error>(answer.error());
    return fail(ErrorKind::kIo, "the server did not join the parts: " + xml_text(body, "Code"),
                {path});
  }

  bool has_object(const std::string& path, std::uint64_t size) {
    const std::string key = above_ + path;
    const auto page = list_page(access_, place_, {key});
    // Keys are sorted: the key itself comes before all that begin with it.
    return page && !page->objects.empty() && page->objects.front().key == key &&
           page->objects.front().size == size;
  }

  Result<Objects> list_uploaded_objects() {
    Objects there;
    PageRequest asked{above_};
    for (std::size_t pages = 0; pages < kMaxUploadPages; ++pages) {
      SHW_TRY(const BucketPage page, list_page(access_, place_, asked));
      for (const BucketObject& object : page.objects) there[object.key] = object.size;
      if (!page.is_truncated || page.next.empty() || page.next == asked.token) break;
      asked.token = page.next;
    }
    return there;
  }

  Status check_sizes(const std::vector<Entry>& files) {
    SHW_TRY(const Objects there, list_uploaded_objects());
    for (const Entry& file : files) {
      const auto found = there.find(above_ + file.path);
      if (found == there.end())
        return fail(ErrorKind::kIo, "was uploaded, but the bucket does not list it", {file.path});
      if (found->second != file.size)
        return fail(ErrorKind::kIo,
                    fmt::format("has {} bytes in the bucket, but {} were uploaded", found->second,
                                file.size),
                    {file.path});
    }
    return {};
  }

  const Directory& folder_;
  RemotePlace place_;
  BucketAccess& access_;
  std::string above_;
  Progress* progress_;
};

Result<RemotePlace> bucket_place(const std::string& target) {
  auto place = is_remote(target) ? parse_remote(target)
                                 : fail(ErrorKind::kUsage, "is not a bucket", {target});
  if (place && place->kind != RemoteKind::kS3 && place->kind != RemoteKind::kGs)
    place = fail(ErrorKind::kUsage, "is not a bucket", {place->shown});
  if (!place && place.error().advice.empty())
    place.error().advice = "Write s3://BUCKET/PREFIX or gs://BUCKET/PREFIX.";
  return place;
}

}  // namespace

std::vector<Entry> upload_order(std::vector<Entry> files) {
  std::stable_sort(files.begin(), files.end(), [](const Entry& a, const Entry& b) {
    const int rank_a = marker_rank(a.path), rank_b = marker_rank(b.path);
    return rank_a != rank_b ? rank_a < rank_b : a.path < b.path;
  });
  return files;
}

Status check_upload_target(const std::string& target) {
  SHW_TRY(const RemotePlace place, bucket_place(target));
  BucketAccess access(place);
  return check_target_is_empty(place, access);
}

Result<Uploaded> upload_folder(const Directory& folder, const std::string& target,
                               Progress* progress) {
  SHW_TRY(RemotePlace place, bucket_place(target));
  BucketAccess access(place);
  return BucketUpload(folder, std::move(place), access, progress).send();
}

}  // namespace shw
