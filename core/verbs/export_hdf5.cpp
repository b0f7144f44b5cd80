#include "core/verbs/export_hdf5.h"

#include "core/io/place.h"
#include "core/io/store.h"
#include "core/verbs/output_place.h"

namespace shw::verbs {
namespace {

Result<std::string> output_of(const Opened& opened, const VerbOptions& said) {
  if (!said.out.empty()) {
    SHW_CHECK(check_output_place(opened, said, said.out));
    return said.out;
  }
  SHW_TRY(std::string source, posix_store().resolved(said.checkpoint));
  const std::string out = without_trailing_slashes(source) + ".h5";
  SHW_CHECK(check_output_place(opened, said, out));
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
