// Replacements for builds without the HDF5 library.
#include "core/hdf5/hdf5_writer.h"

namespace shw {
namespace {

tl::unexpected<Error> hdf5_not_built_in_error() {
  return fail(ErrorKind::kUnsupported,
              "this program was built without HDF5, so it writes no HDF5 file", {},
              "Install libhdf5-dev (Debian, Ubuntu) and build again: CMake finds it by itself.");
}

}  // namespace

struct Hdf5Writer::State {};

bool has_hdf5() {
  return false;
}

Hdf5Writer::Hdf5Writer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Hdf5Writer::Hdf5Writer(Hdf5Writer&&) noexcept = default;
Hdf5Writer& Hdf5Writer::operator=(Hdf5Writer&&) noexcept = default;
Hdf5Writer::~Hdf5Writer() = default;

Result<Hdf5Writer> Hdf5Writer::create(const std::string&, std::string) {
  return hdf5_not_built_in_error();
}
Status Hdf5Writer::set_attributes(const std::string&, const Hdf5Attributes&) {
  return hdf5_not_built_in_error();
}
Status Hdf5Writer::add_external(const Hdf5Dataset&, std::span<const Hdf5Segment>) {
  return hdf5_not_built_in_error();
}
Status Hdf5Writer::add_virtual(const Hdf5Dataset&, std::span<const Hdf5Part>) {
  return hdf5_not_built_in_error();
}
Status Hdf5Writer::add_stack_slice(const Hdf5Dataset&, const std::string&, std::int64_t,
                                   std::int64_t) {
  return hdf5_not_built_in_error();
}
Status Hdf5Writer::add_copied(const Hdf5Dataset&, const std::function<Status(const WriteBox&)>&) {
  return hdf5_not_built_in_error();
}
Status Hdf5Writer::add_columns(const std::string&, std::span<const Hdf5Column>) {
  return hdf5_not_built_in_error();
}
Status Hdf5Writer::add_table(const Hdf5Table&, Progress*) {
  return hdf5_not_built_in_error();
}
Status Hdf5Writer::close() {
  return hdf5_not_built_in_error();
}

}  // namespace shw
