// Files that in-place repairs create in the checkpoint; shared by in_place.cpp and
// in_place_resume.cpp.
#pragma once

#include <array>

#include "core/io/owner.h"
#include "core/io/store.h"
#include "core/repair/proof/certificate.h"

namespace shw::in_place {

inline constexpr const char* kUndo = ".metadata.shardwright-undo";
inline constexpr const char* kNew = ".metadata.shardwright-new";
inline constexpr const char* kHalf = ".metadata.shardwright-half";
inline constexpr const char* kOldCertificate = "certificate.json.shardwright-undo";
inline constexpr const char* kNewCertificate = "certificate.json.shardwright-new";
inline constexpr const char* kHalfCertificate = "certificate.json.shardwright-half";
inline constexpr const char* kRequest = ".shardwright-request";
inline constexpr const char* kHalfRequest = ".shardwright-request-half";

// Files that exist only while a repair is running.
inline constexpr std::array<const char*, 7> kAtWork = {
    kNew, kHalf, kNewCertificate, kHalfCertificate, kRequest, kHalfRequest, kOwnerFile};

inline bool is_there(const Directory& directory, const char* path) {
  return directory.stat(path).kind != EntryKind::kMissing;
}
Result<Bytes> contents(const Directory& directory, const char* path);
Status remove_if_there(WritableDirectory& files, const Directory& directory, const char* path);
// Removes the journal, and all files of kAtWork except the owner file.
Status remove_work_files_except_owner(WritableDirectory& files, const Directory& directory);
// Removes all of kAtWork, and a journal that the making of the folder may have left.
Status remove_work(WritableDirectory& files, const Directory& directory);
// Undoes a repair that has not replaced .metadata yet: restores the state before it.
Status abandon_repair(WritableDirectory& files, const Directory& directory);

Result<Certificate> certificate_in(const Directory& directory, const char* path);
// Checks that no running process owns the checkpoint.
Status check_not_in_use(const Store& store, const std::string& path);
// Checks that no process other than this one owns the checkpoint.
Status check_not_claimed_by_other(const Store& store, const Directory& directory);
// Restores the old metadata, whatever .metadata is now: undo_repair() for the process that owns the
// checkpoint.
Status roll_back(Store& store, const std::string& checkpoint_path);

}  // namespace shw::in_place
