#include "core/repair/proof/certified_folder.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/formats/open.h"
#include "core/io/path_text.h"
#include "core/repair/proof/against.h"
#include "core/repair/proof/certificate.h"

namespace shw {
namespace {

// Evidence that a certified file has changed; nullopt if there is none.
std::optional<std::string> change_of(const std::string& path, const Directory& directory,
                                     const FileCertificate& file) {
  if (!is_safe_relative_path(file.path)) return std::nullopt;
  const EntryKind kind = directory.stat(file.path).kind;
  if (kind == EntryKind::kMissing) return file.path + ": is certified, but missing";
  if (kind != EntryKind::kFile) return file.path + ": is certified, but is no longer a file";
  auto bytes = directory.open(file.path);
  if (bytes && (*bytes)->size() != file.size)
    return fmt::format("{}: has {} bytes, but {} were certified", file.path, (*bytes)->size(),
                       file.size);
  auto alone = open_checkpoint(path + "/" + file.path);
  if (alone || alone.error().kind != ErrorKind::kDamaged) return std::nullopt;
  return file.path + ": " + alone.error().message;
}

// Reasons from the certificate why a folder cannot be opened. If no format recognises the folder,
// only changes of certified files count: a new file next to them can have the same effect.
std::vector<std::string> reasons_from_certificate(const std::string& path, const Error& error,
                                                  Progress* progress) {
  if (error.kind != ErrorKind::kDamaged && error.kind != ErrorKind::kUnsupported) return {};
  auto directory = open_directory(path);
  if (!directory || (*directory)->stat(kCertificateFile).kind != EntryKind::kFile) return {};
  auto certificate = certificate_in(**directory, progress);
  if (!certificate || certificate->seal != Certificate::Seal::kIntact) return {};
  if (error.kind == ErrorKind::kDamaged) return {error_with_place_text(error)};
  std::vector<std::string> reasons;
  for (const FileCertificate& file : certificate->files) {
    if (auto change = change_of(path, **directory, file)) reasons.push_back(std::move(*change));
  }
  return reasons;
}

}  // namespace

Result<std::optional<VerifyReport>> verdict_if_unopenable(const std::string& path,
                                                          const Error* error, Progress* progress,
                                                          Team* team) {
  std::vector<std::string> reasons;
  if (error != nullptr) reasons = reasons_from_certificate(path, *error, progress);
  bool is_broken = !reasons.empty();
  if (team != nullptr) {
    SHW_TRY(auto told, team->allgather(Bytes(1, std::byte{is_broken}), "open the result"));
    is_broken = std::all_of(told.begin(), told.end(),
                            [](const Bytes& one) { return one == Bytes(1, std::byte{1}); });
  }
  if (!is_broken) return std::nullopt;
  VerifyReport report;
  report.outcome = VerifyReport::Outcome::kBroken;
  report.reasons = std::move(reasons);
  return report;
}

std::string folder_that_certifies(const std::string& path) {
  const std::string folder = parent_of(path), name = path.substr(path.rfind('/') + 1);
  auto directory = open_directory(folder);
  if (!directory || !is_safe_relative_path(name) ||
      (*directory)->stat(name).kind != EntryKind::kFile)
    return path;
  auto certificate = certificate_in(**directory, nullptr);
  if (!certificate) return path;
  const auto& files = certificate->files;
  return std::any_of(files.begin(), files.end(),
                     [&](const FileCertificate& file) { return file.path == name; })
             ? folder
             : path;
}

}  // namespace shw
