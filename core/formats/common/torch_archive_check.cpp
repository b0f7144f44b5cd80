#include "core/formats/common/torch_archive_check.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>

#include "core/base/utf8.h"
#include "core/base/words.h"

namespace shw {
namespace {

constexpr std::string_view kIdRecord = ".data/serialization_id",
                           kAlignmentRecord = ".storage_alignment",
                           kFormatVersionRecord = ".format_version";
// torch writes at most forty digits.
constexpr std::uint64_t kMaxSaid = 4096;
// PyTorchStreamReader: kMinSupportedFileFormatVersion, kMaxSupportedFileFormatVersion.
constexpr std::uint64_t kFirstVersion = 1, kLastVersion = 10;

// nullopt if there is no such record, which torch accepts.
Result<std::optional<std::string>> text_of(const ZipReader& zip, std::string_view name) {
  const ZipEntry* record = zip.find(name);
  if (record == nullptr || record->length > kMaxSaid) return std::nullopt;
  SHW_TRY(Bytes bytes, zip.read(*record, kMaxSaid));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

tl::unexpected<Error> wrong_record_error(const ZipReader& zip, std::string_view name,
                                         std::string_view what) {
  return zip.damaged(zip.find(name)->header_offset,
                     fmt::format("the record {} is not a {}: torch.load fails there", name, what));
}

// torch reads the version from the first of the two records that exists.
std::string_view version_record(const ZipReader& zip) {
  constexpr std::string_view kBesideData = ".data/version";
  return zip.find(kBesideData) != nullptr ? kBesideData : "version";
}

// torch uses std::stoull, which ignores text around the digits.
Status check_version(const ZipReader& zip) {
  const std::string_view record = version_record(zip);
  if (zip.find(record) == nullptr)
    return zip.damaged(0, "the archive has no record \"version\": torch.load refuses it");
  SHW_TRY(auto version, text_of(zip, record));
  if (!version) return {};
  std::string_view digits = *version;
  digits.remove_prefix(std::min(digits.find_first_not_of(" \t\n\v\f\r"), digits.size()));
  if (digits.starts_with('+')) digits.remove_prefix(1);
  auto number = consume_number(digits);
  if (number && *number >= kFirstVersion && *number <= kLastVersion) return {};
  return wrong_record_error(zip, record, "version that torch reads");
}

}  // namespace

const ZipEntry* find_version(const ZipReader& zip) {
  return zip.find(version_record(zip));
}

std::array<const ZipEntry*, 3> torch_records(const ZipReader& zip) {
  return {zip.find(kFormatVersionRecord), zip.find(kAlignmentRecord), zip.find(kIdRecord)};
}

Status check_is_torch_archive(const ZipReader& zip) {
  const std::string& first = zip.entries().front().name;
  const std::string folder = first.substr(0, first.find('/') + 1);
  for (const ZipEntry& entry : zip.entries()) {
    if (!folder.empty() && entry.name.starts_with(folder)) continue;
    return zip.damaged(
        entry.header_offset,
        fmt::format("the record \"{}\" is {}: torch.load refuses such an archive", entry.name,
                    folder.empty() ? "in no folder" : "outside of the folder " + folder));
  }
  for (const ZipEntry* record : torch_records(zip)) {
    if (record == nullptr) continue;
    if (auto data = zip.data_offset(*record); !data) return tl::unexpected(data.error());
  }
  return check_version(zip);
}

Status check_is_torch_save_archive(const ZipReader& zip) {
  SHW_CHECK(check_is_torch_archive(zip));
  if (const ZipEntry* constants = zip.find(kConstantsRecord))
    return zip.damaged(constants->header_offset,
                       "the archive has a record constants.pkl, like TorchScript archives: "
                       "torch.load does not open it as tensors");
  return {};
}

Status check_declared_records(const ZipReader& zip) {
  SHW_TRY(auto id, text_of(zip, kIdRecord));
  if (id && !is_utf8(*id)) return wrong_record_error(zip, kIdRecord, "text");
  SHW_TRY(auto alignment, text_of(zip, kAlignmentRecord));
  if (alignment) {
    std::string_view digits = *alignment;
    if (!consume_number(digits) || !digits.empty())
      return wrong_record_error(zip, kAlignmentRecord, "number");
  }
  return zip.find(version_record(zip)) == nullptr ? Status{} : check_version(zip);
}

}  // namespace shw
