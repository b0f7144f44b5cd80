#include "core/formats/hdf5/hdf5_formats.h"

#include <iterator>

#include "core/base/words.h"
#include "core/formats/common/codecs.h"

namespace shw {
namespace {

// The number after the last "rank" in "shard_rank3.h5", "rank_00003.h5", "rank-3.h5".
std::optional<std::uint32_t> rank_in_name(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  std::size_t at = name.rfind("rank");
  if (at == std::string_view::npos) return std::nullopt;
  name.remove_prefix(at + 4);
  if (name.starts_with('_') || name.starts_with('-')) name.remove_prefix(1);
  return consume_number(name);
}

constexpr Codec kUnreadCodecs[] = {
    {"hdf5"},
    {"chunked HDF5"},
    {"filtered or compressed HDF5"},
    {"external HDF5 (elements in other files)"},
    {"virtual HDF5 (elements in other datasets)"},
    {"big-endian HDF5"},
    {"HDF5 elements without a torch dtype"},
    {"HDF5 with a named type"},
    {"HDF5 with its attributes in a heap"},
};
static_assert(std::size(kUnreadCodecs) == static_cast<std::size_t>(Hdf5Unsupported::kCount));

}  // namespace

const Codec& unsupported_codec(Hdf5Unsupported unread) {
  return kUnreadCodecs[static_cast<std::size_t>(unread)];
}

constexpr Format kHdf5Format = {
    .name = "hdf5",
    .title = "HDF5",
    .codec = &kRawCodec,
    .traits = {.writer_of_file = rank_in_name},
};

}  // namespace shw
