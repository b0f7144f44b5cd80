#include "core/verbs/export_hdf5.h"

#include "core/hdf5/hdf5_writer.h"
#include "core/io/place.h"
#include "core/io/store.h"

namespace shw::verbs {
namespace {

bool holds_one_file(const Directory& directory) {
  auto entries = directory.list(2);
  return entries && entries->size() == 1;
}

Result<std::string> output_of(const Opened& opened, const VerbOptions& said) {
  Store& store = posix_store();
  SHW_TRY(std::string source, store.resolved(said.checkpoint));
  const std::string out = said.out.empty() ? without_trailing_slashes(source) + ".h5" : said.out;
  if (!store.exists(parent_of(out)))
    return fail(ErrorKind::kIo, "is not there, so nothing can be written into it", {parent_of(out)},
                "make the folder first, or choose another one with --out");
  // Of one file that was opened alone the folder around it is not the checkpoint.
  const bool is_alone =
      store.names(said.checkpoint).empty() && holds_one_file(*opened.checkpoint->directory());
  SHW_TRY(std::string folder, store.resolved(opened.checkpoint->directory()->name()));
  SHW_TRY(std::string real_out, store.resolved(out));
  if (!is_alone && is_within(real_out, folder))
    return fail(ErrorKind::kUsage, "the output must lie beside the checkpoint, not in it", {out},
                "choose another place with --out");
  return out;
}

}  // namespace

Result<Exported> export_hdf5(const Opened& opened, const VerbOptions& said, ExportOptions options,
                             Progress* progress) {
  SHW_TRY(options.out, output_of(opened, said));
  auto found = check(opened, said.depth, progress);
  if (!found && found.error().kind == ErrorKind::kCancelled)
    return tl::unexpected<Error>(std::move(found).error());
  if (found) options.findings = std::move(found->findings);
  auto exported = shw::export_hdf5(*opened.checkpoint, options, progress);
  if (exported && !found)
    exported->notes.push_back("the checkpoint could not be checked: " + found.error().message);
  return exported;
}

}  // namespace shw::verbs
