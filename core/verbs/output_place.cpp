#include "core/verbs/output_place.h"

#include "core/io/path_text.h"
#include "core/io/same_file.h"
#include "core/io/store.h"
#include "core/repair/run/local_place.h"

namespace shw::verbs {
namespace {

constexpr const char* kElsewhere = "choose another output with --out";

bool contains_one_file(const Directory& directory) {
  auto entries = directory.list(2);
  return entries && entries->size() == 1;
}

Status check_output_is_not_source(const Checkpoint& checkpoint, const std::string& opened_as,
                                  const std::string& out) {
  if (checkpoint.directory() == nullptr) return {};
  Store& store = posix_store();
  const Directory& directory = *checkpoint.directory();
  const bool is_alone = !store.read_folder(opened_as) && contains_one_file(directory);
  SHW_TRY(std::string folder, store.resolved(directory.name()));
  // Both the name to be replaced and the target of a link are checked.
  SHW_TRY(std::string around, store.resolved(parent_of(out)));
  SHW_TRY(std::string real_out, store.resolved(out));
  if (!is_alone && (is_within(around, folder) || is_within(real_out, folder)))
    return fail(ErrorKind::kUsage, "the output must be next to the checkpoint, not in it", {out},
                kElsewhere);
  if (!store.exists(out)) return {};
  if (is_same_file(out, opened_as))
    return fail(ErrorKind::kUsage, "is the checkpoint that was opened", {out}, kElsewhere);
  for (const FileRow& file : checkpoint.files()) {
    if (is_same_file(out, folder + "/" + file.path))
      return fail(ErrorKind::kUsage, "is a file of the checkpoint, " + file.path, {out},
                  kElsewhere);
  }
  return {};
}

}  // namespace

Status check_output_apart(const std::string& checkpoint, const std::string& out) {
  SHW_CHECK(check_is_local(out));
  Store& store = posix_store();
  if (!store.exists(parent_of(out)))
    return fail(ErrorKind::kIo, "is not there, so nothing can be written into it",
                {parent_of(out)});
  SHW_TRY(std::string around, store.resolved(parent_of(out)));
  constexpr std::string_view kIndex = "/.metadata";
  std::string folder = checkpoint;
  if (folder.ends_with(kIndex)) folder.resize(folder.size() - kIndex.size());
  auto opened = store.resolved(folder);
  if ((!opened || !is_within(around, *opened)) && !is_same_file(out, checkpoint)) return {};
  return fail(ErrorKind::kUsage, "the output must be next to the checkpoint, not in it", {out},
              kElsewhere);
}

Status check_output_place(const Opened& opened, const VerbOptions& options,
                          const std::string& out) {
  SHW_CHECK(check_is_local(out));
  if (!posix_store().exists(parent_of(out)))
    return fail(ErrorKind::kIo, "is not there, so nothing can be written into it", {parent_of(out)},
                "make the folder first, or choose another one with --out");
  SHW_CHECK(check_output_is_not_source(*opened.checkpoint, options.checkpoint, out));
  if (opened.reference != nullptr)
    SHW_CHECK(check_output_is_not_source(*opened.reference, options.against, out));
  return {};
}

}  // namespace shw::verbs
