#include "core/io/remote/sftp_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "core/io/path_text.h"
#include "core/io/remote/sftp_client.h"

namespace shw {
namespace {

// Maximum depth of subfolders, as for local folders.
constexpr int kSftpDepth = 4;
// OpenSSH's server sends at most this much; after a shorter answer the rest is requested again.
constexpr std::uint64_t kSftpPiece = 128 * 1024;
constexpr std::size_t kMaxHandles = 32;
// OpenSSH answers 100 names at a time: 8 requests in flight list 800 files in one round trip.
constexpr std::size_t kListingsAtOnce = 8;

// Path on the host: "/~/runs" is "runs" in the home folder, where SFTP starts.
std::string sftp_root(const RemotePlace& place) {
  if (place.path.empty()) return "/";
  if (place.path == "/~") return ".";
  return place.path.starts_with("/~/") ? place.path.substr(3) : place.path;
}

std::string sftp_text(std::string_view text) {
  return SftpWriter().text(text).bytes();
}

struct SftpName {
  std::string path;
  SftpAttributes attributes;
};

bool is_data_name(std::string_view name) {
  return name.ends_with(".safetensors") || name.ends_with(".distcp");
}

RemoteFile remote_file(const SftpName& name) {
  const SftpAttributes& attributes = name.attributes;
  RemoteFile file{name.path, attributes.size};
  file.modified_ns = std::int64_t{attributes.modified} * 1'000'000'000;
  file.kind = attributes.is_file()     ? EntryKind::kFile
              : attributes.is_folder() ? EntryKind::kDirectory
              : attributes.is_link()   ? EntryKind::kDanglingLink
                                       : EntryKind::kOther;
  return file;
}

class SftpFiles final : public RemoteFiles {
 public:
  SftpFiles(std::shared_ptr<SftpClient> client, RemotePlace place, bool is_deep)
      : client_(std::move(client)),
        place_(std::move(place)),
        root_(sftp_root(place_)),
        is_deep_(is_deep) {}

  bool lists_all() const override { return is_deep_; }

  Result<std::vector<RemoteFile>> list(std::size_t limit) override {
    return with_connection([&] { return list_all(limit); });
  }

  Result<std::optional<RemoteFile>> find(const std::string& path) override {
    return with_connection([&]() -> Result<std::optional<RemoteFile>> {
      SHW_TRY(const SftpAnswer answer, client_->ask({SftpType::kStat, sftp_text(full(path))}));
      if (answer.type == SftpType::kStatus && answer.status == kSftpNoSuchFile) return std::nullopt;
      SHW_TRY(const SftpAttributes attributes, attributes_in(answer, path));
      return remote_file({path, attributes});
    });
  }

  Status read(std::span<const RemoteRange> ranges) override {
    return with_connection([&]() -> Status {
      SHW_CHECK(open_handles(ranges));
      return read_and_check(ranges);
    });
  }

 private:
  // Logs in again if the connection was lost, and its handles with it.
  Status connect() {
    if (!client_->is_broken()) return {};
    handles_.clear();
    SHW_TRY(client_, sftp_connection(place_));
    return {};
  }

  // Does `work`; once more on a new connection if the connection is lost meanwhile.
  template <class Work>
  auto with_connection(Work work) -> decltype(work()) {
    std::lock_guard lock(guard_);
    SHW_CHECK(connect());
    auto done = work();
    if (done || !client_->is_broken()) return done;
    SHW_CHECK(connect());
    return work();
  }

  Result<std::vector<RemoteFile>> list_all(std::size_t limit) {
    std::vector<RemoteFile> files;
    std::vector<std::string> folders = {""};
    for (int depth = 0; !folders.empty(); ++depth) {
      SHW_TRY(std::vector<SftpName> names, names_of(folders, limit));
      SHW_CHECK(follow_links(names));
      folders.clear();
      for (const SftpName& name : names) {
        const bool enters = is_deep_ && name.attributes.is_folder() && depth < kSftpDepth &&
                            !is_data_name(name.path) &&
                            name.path.find(kPartialMark) == name.path.npos;
        if (enters) {
          folders.push_back(name.path);
          continue;
        }
        if (files.size() == limit)
          return fail(ErrorKind::kUnsupported, fmt::format("more than {} files", limit), {root_});
        files.push_back(remote_file(name));
      }
    }
    return files;
  }

  std::string full(const std::string& path) const {
    if (root_ == "/") return "/" + path;
    return path.empty() ? root_ : root_ + "/" + path;
  }

  static tl::unexpected<Error> refused(const std::string& path, const SftpAnswer& answer) {
    if (answer.type != SftpType::kStatus)
      return fail(ErrorKind::kIo, "the host answers what was not asked", {path});
    return fail(ErrorKind::kIo, "cannot read it: " + sftp_status_text(answer.status), {path});
  }

  static Result<SftpAttributes> attributes_in(const SftpAnswer& answer, const std::string& path) {
    if (answer.type != SftpType::kAttributes) return refused(path, answer);
    SftpReader reader(answer.body);
    const SftpAttributes attributes = read_attributes(reader);
    if (reader.is_good()) return attributes;
    return fail(ErrorKind::kIo, "the host sends a truncated packet", {path});
  }

  // Lists several folders with a few round trips in total.
  Result<std::vector<SftpName>> names_of(const std::vector<std::string>& folders,
                                         std::size_t limit) {
    std::vector<SftpName> names;
    std::vector<SftpRequest> opening;
    for (const std::string& folder : folders)
      opening.push_back({SftpType::kOpenDirectory, sftp_text(full(folder))});
    std::vector<std::string> handles(folders.size());
    Status refusal;
    SHW_CHECK(client_->exchange(
        opening, [&](std::size_t i, const SftpAnswer& answer, std::vector<SftpRequest>&) -> Status {
          if (answer.type == SftpType::kHandle) {
            handles[i] = SftpReader(answer.body).text();
            return {};
          }
          // Skips folders that this user may not open.
          const bool is_closed = answer.status == kSftpDenied || answer.status == kSftpNoSuchFile;
          if (!folders[i].empty() && is_closed) return {};
          refusal = refused(full(folders[i]), answer);
          return {};
        }));
    SHW_CHECK(refusal);
    const std::size_t ahead = std::max<std::size_t>(1, kListingsAtOnce / folders.size());
    std::vector<SftpRequest> reading;
    std::vector<std::size_t> owners;
    for (std::size_t i = 0; i < folders.size(); ++i) {
      if (handles[i].empty()) continue;
      for (std::size_t k = 0; k < ahead; ++k) {
        reading.push_back({SftpType::kReadDirectory, sftp_text(handles[i])});
        owners.push_back(i);
      }
    }
    SHW_CHECK(client_->exchange(
        reading,
        [&](std::size_t i, const SftpAnswer& answer, std::vector<SftpRequest>& more) -> Status {
          const std::size_t folder = owners[i];
          if (answer.type == SftpType::kStatus && answer.status == kSftpEndOfFile) return {};
          if (answer.type != SftpType::kName) return refused(full(folders[folder]), answer);
          if (auto taken = read_names(answer, folders[folder], limit, names); !taken) return taken;
          more.push_back({SftpType::kReadDirectory, sftp_text(handles[folder])});
          owners.push_back(folder);
          return {};
        }));
    std::vector<SftpRequest> closing;
    for (const std::string& handle : handles) {
      if (!handle.empty()) closing.push_back({SftpType::kClose, sftp_text(handle)});
    }
    SHW_CHECK(client_->exchange(closing, [](std::size_t, const SftpAnswer&,
                                            std::vector<SftpRequest>&) { return Status{}; }));
    return names;
  }

  Status read_names(const SftpAnswer& answer, const std::string& folder, std::size_t limit,
                    std::vector<SftpName>& names) const {
    SftpReader reader(answer.body);
    const std::uint32_t count = reader.number32();
    // Stops a server that sends empty answers forever.
    if (count == 0)
      return fail(ErrorKind::kIo, "the host lists a folder without an end", {full(folder)});
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::string name = reader.text();
      reader.block();  // the line as `ls -l` prints it
      const SftpAttributes attributes = read_attributes(reader);
      if (!reader.is_good())
        return fail(ErrorKind::kIo, "the host sends a truncated packet", {full(folder)});
      if (name == "." || name == ".." || !is_safe_relative_path(name) ||
          name.find('/') != name.npos)
        continue;
      if (names.size() > limit)
        return fail(ErrorKind::kUnsupported, fmt::format("more than {} files", limit), {root_});
      names.push_back({folder.empty() ? name : folder + "/" + name, attributes});
    }
    return {};
  }

  // Replaces a link's attributes by those of its target; links to folders are omitted.
  Status follow_links(std::vector<SftpName>& names) {
    std::vector<SftpRequest> asking;
    std::vector<std::size_t> links;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (!names[i].attributes.is_link()) continue;
      links.push_back(i);
      asking.push_back({SftpType::kStat, sftp_text(full(names[i].path))});
    }
    SHW_CHECK(client_->exchange(
        asking, [&](std::size_t i, const SftpAnswer& answer, std::vector<SftpRequest>&) -> Status {
          SftpName& name = names[links[i]];
          if (answer.type != SftpType::kAttributes) return {};
          SHW_TRY(name.attributes, attributes_in(answer, name.path));
          if (name.attributes.is_folder()) name.path.clear();
          return {};
        }));
    std::erase_if(names, [](const SftpName& name) { return name.path.empty(); });
    return {};
  }

  Status open_handles(std::span<const RemoteRange> ranges);
  Status read_and_check(std::span<const RemoteRange> ranges);
  static Status check_unchanged(const RemoteFile& file, const SftpAnswer& answer);

  std::mutex guard_;  // guards the connection and its handles
  std::shared_ptr<SftpClient> client_;
  std::map<std::string, std::string> handles_;  // by path
  RemotePlace place_;
  std::string root_;
  bool is_deep_;
};

// Keeps handles open for the next read, and closes all of them if there are too many.
Status SftpFiles::open_handles(std::span<const RemoteRange> ranges) {
  std::vector<SftpRequest> requests;
  std::vector<std::string> paths;
  if (handles_.size() > kMaxHandles) {
    for (const auto& [path, handle] : handles_)
      requests.push_back({SftpType::kClose, sftp_text(handle)});
    handles_.clear();
  }
  const std::size_t closing = requests.size();
  constexpr std::uint32_t kForReading = 1;
  for (const RemoteRange& range : ranges) {
    const std::string& path = range.file->path;
    if (handles_.contains(path) || std::find(paths.begin(), paths.end(), path) != paths.end())
      continue;
    paths.push_back(path);
    requests.push_back(
        {SftpType::kOpen, SftpWriter().text(full(path)).number32(kForReading).number32(0).bytes()});
  }
  Status refusal;
  SHW_CHECK(client_->exchange(
      requests, [&](std::size_t i, const SftpAnswer& answer, std::vector<SftpRequest>&) -> Status {
        if (i < closing) return {};
        const std::string& path = paths[i - closing];
        if (answer.type == SftpType::kHandle)
          handles_[path] = SftpReader(answer.body).text();
        else if (refusal)
          refusal = refused(path, answer);
        return {};
      }));
  return refusal;
}

// Asks for the attributes behind the reads, without waiting: a server answers requests for one
// handle in order, and a write in the meantime changes the file's modification time.
Status SftpFiles::read_and_check(std::span<const RemoteRange> ranges) {
  struct Asked {
    const RemoteRange* range;
    std::uint64_t begin = 0, length = 0;  // in the range; length 0: the attributes
  };
  std::vector<Asked> asked;
  auto ask = [&](const Asked& one, std::vector<SftpRequest>& requests) {
    SftpWriter body;
    body.text(handles_.at(one.range->file->path));
    if (one.length != 0)
      body.number64(one.range->offset + one.begin).number32(static_cast<std::uint32_t>(one.length));
    asked.push_back(one);
    requests.push_back({one.length == 0 ? SftpType::kFstat : SftpType::kRead, body.bytes()});
  };
  std::vector<SftpRequest> requests;
  for (const RemoteRange& range : ranges) {
    for (std::uint64_t at = 0; at < range.out.size(); at += kSftpPiece)
      ask({&range, at, std::min<std::uint64_t>(kSftpPiece, range.out.size() - at)}, requests);
  }
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (i + 1 == ranges.size() || ranges[i].file != ranges[i + 1].file) ask({&ranges[i]}, requests);
  }
  Status refusal;
  auto take = [&](std::size_t i, const SftpAnswer& answer,
                  std::vector<SftpRequest>& more) -> Status {
    const Asked one = asked[i];
    const RemoteFile& file = *one.range->file;
    if (one.length == 0) {
      if (auto same = check_unchanged(file, answer); !same && refusal) refusal = same;
      return {};
    }
    const BytesView data = SftpReader(answer.body).block();
    if (answer.type != SftpType::kData || data.empty() || data.size() > one.length) {
      if (refusal) refusal = refused(file.path, answer);
      return {};
    }
    std::copy(data.begin(), data.end(),
              one.range->out.begin() + static_cast<std::ptrdiff_t>(one.begin));
    if (data.size() == one.length) return {};
    ask({one.range, one.begin + data.size(), one.length - data.size()}, more);
    ask({one.range}, more);
    return {};
  };
  SHW_CHECK(client_->exchange(std::move(requests), take));
  return refusal;
}

Status SftpFiles::check_unchanged(const RemoteFile& file, const SftpAnswer& answer) {
  SHW_TRY(const SftpAttributes now, attributes_in(answer, file.path));
  const std::int64_t modified = std::int64_t{now.modified} * 1'000'000'000;
  if (now.size == file.size && modified == file.modified_ns) return {};
  return fail(
      ErrorKind::kDamaged,
      fmt::format("changed while it was read: it had {} bytes and has {}", file.size, now.size),
      {file.path}, "Wait until the checkpoint is written, then start again.");
}

}  // namespace

Result<std::shared_ptr<SftpClient>> sftp_connection(const RemotePlace& place) {
  static std::mutex guard;
  static std::map<std::string, std::weak_ptr<SftpClient>> clients;
  const std::string key = place.userinfo + "@" + place.host + ":" + place.port;
  std::lock_guard lock(guard);
  if (auto client = clients[key].lock(); client != nullptr && !client->is_broken()) return client;
  SHW_TRY(auto client, SftpClient::connect(place));
  clients[key] = client;
  return client;
}

Result<std::unique_ptr<RemoteFiles>> sftp_files(const RemotePlace& folder, bool is_deep) {
  SHW_TRY(auto client, sftp_connection(folder));
  return std::make_unique<SftpFiles>(std::move(client), folder, is_deep);
}

Result<std::optional<SftpAttributes>> sftp_attributes(const RemotePlace& place,
                                                      std::shared_ptr<SftpClient>& connection) {
  const SftpRequest request{SftpType::kStat, sftp_text(sftp_root(place))};
  auto asked = connection->ask(request);
  if (!asked && connection->is_broken()) {
    SHW_TRY(connection, sftp_connection(place));
    asked = connection->ask(request);
  }
  SHW_TRY(const SftpAnswer answer, std::move(asked));
  if (answer.type == SftpType::kStatus && answer.status == kSftpNoSuchFile) return std::nullopt;
  SftpReader reader(answer.body);
  const SftpAttributes attributes = read_attributes(reader);
  if (answer.type == SftpType::kAttributes && reader.is_good()) return attributes;
  return fail(ErrorKind::kIo, "cannot read it: " + sftp_status_text(answer.status), {place.shown});
}

}  // namespace shw
