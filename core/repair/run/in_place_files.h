// The files of ours in a checkpoint that is repaired in place: a part of in_place.cpp and
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

// What is there only while a repair is at work.
inline constexpr std::array<const char*, 7> kAtWork = {
    kNew, kHalf, kNewCertificate, kHalfCertificate, kRequest, kHalfRequest, kOwnerFile};

inline bool is_there(const Directory& directory, const char* path) {
  return directory.stat(path).kind != EntryKind::kMissing;
}
Result<Bytes> contents(const Directory& directory, const char* path);
Status remove_if_there(WritableDirectory& files, const Directory& directory, const char* path);
// All of kAtWork but the owner, and the journal.
Status remove_preparations(WritableDirectory& files, const Directory& directory);
// All of kAtWork, and the journal that the making of the folder may have left.
Status remove_work(WritableDirectory& files, const Directory& directory);
// Undoes a repair that has not replaced .metadata yet: restores the state before it.
Status abandon_repair(WritableDirectory& files, const Directory& directory);

Result<Certificate> certificate_in(const Directory& directory, const char* path);
// Of processes that live.
Status check_not_in_use(const Store& store, const std::string& path);
// The same, this process aside.
Status check_not_claimed_by_other(const Store& store, const Directory& directory);
// undo_repair() by whoever is at it: the old state is put back, whatever .metadata is now.
Status take_back(Store& store, const std::string& checkpoint_path);

}  // namespace shw::in_place
