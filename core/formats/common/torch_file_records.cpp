#include "core/formats/common/torch_file_records.h"

#include <algorithm>
#include <charconv>

#include "core/base/little_endian.h"
#include "core/formats/common/bad_record.h"
#include "core/formats/common/first_bytes.h"
#include "core/formats/common/legacy_torch_file.h"
#include "core/formats/common/lfs_pointer.h"
#include "core/formats/common/magic.h"
#include "core/formats/common/torch_archive_check.h"

namespace shw {
namespace {

constexpr std::uint64_t kSmallRecord = 4096;
constexpr std::uint64_t kMaxFilled = std::uint64_t{64} << 20;
constexpr std::uint64_t kMaxWhole = std::uint64_t{64} << 20;

bool is_storage(std::string_view name) {
  std::size_t slash = name.find('/');
  if (slash == std::string_view::npos) return false;
  name.remove_prefix(slash);
  return name.starts_with("/data/") || name.starts_with("/constants/");
}

}  // namespace

Result<ZipReader> open_torch_records(std::shared_ptr<const ByteSource> source) {
  if (source->size() == 0) return fail(ErrorKind::kDamaged, "is empty", {source->name(), 0});
  SHW_CHECK(check_is_no_lfs_pointer(*source));
  SHW_TRY(Bytes first,
          read_bytes(*source, 0, std::min<std::uint64_t>(source->size(), kFirstBytes)));
  if (first.size() >= 4 && load_little<std::uint32_t>(first) == kZipMagic)
    return ZipReader::open(source, 0, source->size());
  if (is_legacy_torch_file(first)) return read_legacy_torch_file(std::move(source));
  if (is_tar_of_torch(first))
    return fail(ErrorKind::kUnsupported,
                "is a tar archive of torch.save before torch 0.1.10, which is not supported",
                {source->name(), 0},
                "torch.save(torch.load(FILE, weights_only=False), NEW) writes a supported format. "
                "This runs code in FILE.");
  const std::string_view told = format_from_magic(first);
  return fail(ErrorKind::kDamaged,
              "does not begin like a torch.save file, with PK" +
                  (told.empty() ? std::string() : ": it is " + std::string(told)),
              {source->name(), 0},
              told.find("GGML") == std::string_view::npos
                  ? std::string()
                  : "llama.cpp's convert_llama_ggml_to_gguf.py converts a LLaMA model to GGUF, "
                    "which is supported. whisper.cpp still reads this format.");
}

std::vector<Finding> record_findings(const ZipReader& zip, const std::string& file,
                                     bool is_program) {
  std::vector<Finding> findings;
  if (zip.is_bare()) return findings;
  if (auto is = is_program ? check_is_torch_archive(zip) : check_is_torch_save_archive(zip); !is)
    findings.push_back(bad_record_finding(file, "In " + file + ": " + is.error().message + ".",
                                          is.error().place.offset.value_or(0)));
  for (const ZipEntry& entry : zip.entries()) {
    if (is_storage(entry.name) || entry.length > kSmallRecord) continue;
    auto crc = zip.crc_of(entry, nullptr);
    if (!crc)
      findings.push_back(
          bad_record_finding(file, "In " + file + ": " + crc.error().message + ".",
                             crc.error().place.offset.value_or(entry.header_offset)));
    else if (!zip.lacks_crcs() && *crc != entry.crc)
      findings.push_back(
          bad_record_finding(file,
                             "The record " + entry.name + " of " + file +
                                 " changed after it was written: its checksum differs.",
                             entry.header_offset));
    if (findings.size() == 32) break;
  }
  if (!findings.empty()) return findings;
  if (auto said = check_declared_records(zip); !said)
    findings.push_back(bad_record_finding(file, "In " + file + ": " + said.error().message + ".",
                                          said.error().place.offset.value_or(0)));
  return findings;
}

Result<std::optional<std::string>> read_filled_record(const ZipReader& zip) {
  const ZipEntry* record = zip.find(kFilledRecord);
  if (record == nullptr) return std::nullopt;
  SHW_TRY(Bytes bytes, zip.read(*record, kMaxFilled));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Result<std::set<std::string>> read_unflattened_names(const ZipReader& zip) {
  std::set<std::string> names;
  const ZipEntry* record = zip.find(kWholeRecord);
  if (record == nullptr) return names;
  SHW_TRY(Bytes bytes, zip.read(*record, kMaxWhole));
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  while (!rest.empty()) {
    std::size_t length = 0;
    auto [end, code] = std::from_chars(rest.data(), rest.data() + rest.size(), length);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    if (code != std::errc{} || !rest.starts_with(':') || rest.size() - 1 < length)
      return zip.damaged(record->header_offset, "the record " + record->name +
                                                    " does not record which entries are one value");
    names.emplace(rest.substr(1, length));
    rest.remove_prefix(1 + length);
  }
  return names;
}

std::string unflattened_names_record(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += std::to_string(name.size()) + ":" + name;
  return text;
}

}  // namespace shw
