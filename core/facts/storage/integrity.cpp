#include "core/facts/storage/integrity.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/encoder.h"
#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/base/utf8.h"
#include "core/io/read_through.h"

namespace shw {
namespace {

// Limit of the list: with 100 bytes per file more than 600,000 files.
constexpr std::uint64_t kMaxBytes = std::uint64_t{64} << 20;
constexpr std::size_t kSha256Digits = 64;

struct ListedHash {
  std::string name, expected;  // lower case
  std::uint64_t size = 0;
};

Error unusable_list(std::string why) {
  return {ErrorKind::kDamaged, std::move(why), {.file = kIntegrityFile}};
}

// Lower case; empty if it is not a SHA-256.
std::string sha256_digits_of(const nlohmann::json& value) {
  if (!value.is_string()) return {};
  auto text = value.get<std::string>();
  if (text.size() != kSha256Digits) return {};
  for (char& c : text) {
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return {};
  }
  return text;
}

Result<std::vector<ListedHash>> parse_list(const std::string& text) {
  auto json = parse_json<nlohmann::json>(text).tree;
  if (!json.is_object() || !json.contains("files") || !json["files"].is_object())
    return tl::unexpected<Error>(unusable_list("is not a list of files as Megatron-LM writes it"));
  if (!json.contains("algorithm") || json["algorithm"] != "sha256")
    return tl::unexpected<Error>(unusable_list("has hashes that are not SHA-256"));
  std::vector<ListedHash> listed;
  for (const auto& [name, value] : json["files"].items()) {
    std::string digits = sha256_digits_of(value);
    if (digits.empty())
      return tl::unexpected<Error>(unusable_list("has for " + name + " no SHA-256"));
    listed.push_back({name, std::move(digits)});
  }
  return listed;
}

Result<std::vector<ListedHash>> read_list(const Directory& directory) {
  SHW_TRY(auto source, directory.open(kIntegrityFile));
  if (source->size() > kMaxBytes)
    return tl::unexpected<Error>(unusable_list("is too large for a list of files"));
  SHW_TRY(Bytes bytes, read_bytes(*source, 0, source->size()));
  return parse_list({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

Result<std::string> sha256_of_file(const Directory& directory, const std::string& name,
                                   Progress* progress) {
  SHW_TRY(auto source, directory.open(name));
  RunningSha256 hash;
  ExtentVisitor parts;
  parts.bytes = [&](BytesView bytes) -> Status {
    hash.add(bytes);
    return {};
  };
  SHW_CHECK(read_through(*source, 0, source->size(), parts, progress));
  std::string text = hash.text();
  if (text.empty()) return fail(ErrorKind::kUnsupported, "libcrypto refuses SHA-256", {name});
  return text;
}

// Separates files that cannot be hashed; returns the others.
std::vector<ListedHash> separate_unhashable_files(const Directory& directory,
                                                  std::vector<ListedHash> listed, Integrity& out) {
  std::vector<ListedHash> there;
  for (ListedHash& file : listed) {
    if (!is_safe_relative_path(file.name)) {
      out.names_outside_folder.push_back(std::move(file.name));
      continue;
    }
    Entry entry = directory.stat(file.name);
    if (entry.kind != EntryKind::kFile) {
      out.missing.push_back(std::move(file.name));
      continue;
    }
    file.size = entry.size;
    there.push_back(std::move(file));
  }
  return there;
}

// One hash per file, or the read error. Largest files first, because one thread hashes a
// file.
Result<std::vector<Result<std::string>>> hashes_of_files(const Directory& directory,
                                                         std::vector<ListedHash>& files,
                                                         Progress* progress, Team* team) {
  std::stable_sort(files.begin(), files.end(),
                   [](const ListedHash& a, const ListedHash& b) { return a.size > b.size; });
  std::vector<std::uint64_t> sizes;
  for (const ListedHash& file : files) sizes.push_back(file.size);
  std::vector<Result<std::string>> hashes(files.size());
  // The hash, or an empty text and the reason.
  MapTask work{"hash files", sizes, {}, progress};
  work.find = [&](std::size_t i) -> Result<std::string> {
    hashes[i] = sha256_of_file(directory, files[i].name, progress);
    if (!hashes[i] && hashes[i].error().kind == ErrorKind::kCancelled) return hashes[i];
    Encoder payload;
    payload.add(std::string_view(hashes[i] ? *hashes[i] : std::string()));
    if (!hashes[i]) payload.add(hashes[i].error());
    return packed_text(payload.take());
  };
  SHW_TRY(std::vector<std::string> told, map_across_ranks(team, work));
  for (std::size_t i = 0; team != nullptr && i < told.size(); ++i) {
    Decoder payload(std::as_bytes(std::span(told[i])));
    SHW_TRY(hashes[i], payload.text());
    if (!hashes[i]->empty()) continue;
    SHW_TRY(Error why, payload.error());
    hashes[i] = tl::unexpected<Error>(std::move(why));
  }
  return hashes;
}

Status hash_files(const Directory& directory, std::vector<ListedHash> files, Integrity& out,
                  Progress* progress, Team* team) {
  for (const ListedHash& file : files) out.hashed_bytes += file.size;
  if (progress != nullptr) progress->begin(Phase::kReadingBytes, out.hashed_bytes, true);
  SHW_TRY(auto actual, hashes_of_files(directory, files, progress, team));
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (!actual[i])
      out.unread.push_back(files[i].name);
    else if (*actual[i] != files[i].expected)
      out.differing.push_back({files[i].name, files[i].expected, *actual[i]});
  }
  std::sort(out.unread.begin(), out.unread.end());
  std::sort(out.differing.begin(), out.differing.end(),
            [](const FileHash& a, const FileHash& b) { return a.name < b.name; });
  return {};
}

}  // namespace

Result<std::optional<Integrity>> read_integrity(const Checkpoint& checkpoint, Depth depth,
                                                Progress* progress, Team* team) {
  if (checkpoint.directory() == nullptr) return std::nullopt;
  const Directory& directory = *checkpoint.directory();
  if (directory.stat(kIntegrityFile).kind != EntryKind::kFile) return std::nullopt;
  std::optional<Integrity> out(std::in_place);
  auto listed = read_list(directory);
  if (!listed) {
    out->unusable = std::move(listed).error();
    return out;
  }
  out->listed = listed->size();
  std::set<std::string> names;
  for (const ListedHash& file : *listed) names.insert(file.name);
  for (const FileRow& file : checkpoint.files()) {
    if (file.referenced && file.kind == EntryKind::kFile && names.count(file.path) == 0)
      out->unlisted.push_back(file.path);
  }
  std::vector<ListedHash> there = separate_unhashable_files(directory, std::move(*listed), *out);
  if (depth == Depth::kData) {
    SHW_CHECK(hash_files(directory, std::move(there), *out, progress, team));
  } else {
    out->unhashed_file_count = there.size();
  }
  return out;
}

Result<std::string> make_integrity_list(const Directory& folder,
                                        const std::vector<std::string>& files, Progress* progress) {
  std::vector<ListedHash> listed;
  for (const std::string& name : files) {
    if (!is_utf8(name))
      return fail(ErrorKind::kUnsupported,
                  "has a name that integrity.json cannot store: it is not UTF-8", {name},
                  "rename it, or run without --integrity");
  }
  for (const std::string& name : files) listed.push_back({name, {}, folder.stat(name).size});
  SHW_TRY(auto hashes, hashes_of_files(folder, listed, progress, nullptr));
  std::map<std::string, std::string> by_name;
  for (std::size_t i = 0; i < listed.size(); ++i) {
    SHW_TRY(by_name[listed[i].name], std::move(hashes[i]));
  }
  nlohmann::ordered_json out = {{"algorithm", "sha256"},
                                {"files", nlohmann::ordered_json::object()}};
  auto& names = out["files"].get_ref<nlohmann::ordered_json::object_t&>();
  for (auto& [name, hash] : by_name) names.push_back({name, std::move(hash)});
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace shw
