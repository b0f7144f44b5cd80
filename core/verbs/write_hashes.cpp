#include "core/verbs/write_hashes.h"

#include "core/report/hash_report.h"
#include "core/verbs/new_file.h"
#include "core/verbs/output_place.h"
#include "core/verbs/verbs_over_ssh.h"

namespace shw::verbs {

Result<WrittenReport> write_hashes(Store& store, const Opened& opened, const VerbOptions& options,
                                   const std::string& path, bool over_ssh, Progress* progress) {
  SHW_TRY(const std::string place,
          free_path(store, place_request(NewFile::kHashes, options.checkpoint, {}, path)));
  SHW_CHECK(check_output_place(opened, options, place));
  std::string text;
  if (over_ssh) {
    SHW_TRY(text, hash_over_ssh(options, progress));
  } else {
    SHW_TRY(const HashedTensors hashed, hash(opened, {}, progress));
    text = hashes_to_text(hashed);
  }
  return write_new_text(store, place, text);
}

}  // namespace shw::verbs
