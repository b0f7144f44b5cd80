// What a format is to everybody but the code that reads it: its names, and what may be relied on.
// The rows stand in core/formats, one folder a format; nothing outside asks which one it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shw {

struct ItemReader;    // core/formats/common/item_reader.h
struct FormatWriter;  // core/formats/format_writer.h

// How the bytes of a storage lie at their place, and who reads them.
struct Codec {
  std::string_view name;               // "torch-zip", "raw"
  const ItemReader* reader = nullptr;  // null in checkpoints of columns only
  bool lies_bare = false;              // elements and nothing else: an item says nothing of itself
};

// Every trait says what asks for it. A format that says nothing gets the cautious answer.
struct FormatTraits {
  // --- where names, boxes and places are recorded

  // In an index apart from the data: other names and boxes cost no byte of data, and a record may
  // point to another entry's item. Without, they stand in the data files themselves.
  bool has_index = false;
  // All of it in `index_file`: replaced by one rename, so that a relabel can be done in place.
  bool one_index_file = false;
  // Every save writes the index after the data: data that are younger come from another save.
  bool index_comes_last = false;
  std::string_view index_file = {};  // its name, for people; of several the first
  // Where every rank has an index of its own: its name.
  std::string (*index_of_rank)(std::uint32_t rank) = nullptr;

  // --- data files

  // Who wrote a file, from its name; null where names do not tell.
  std::optional<std::uint32_t> (*writer_of_file)(std::string_view path) = nullptr;
  // Where every rank leaves a data file, an empty one if it has nothing to write: its name.
  std::string (*file_of_rank)(std::uint32_t rank) = nullptr;
  // Where no index lists the files and their numbers are all there is: the names that are left out.
  // `there`: how many have such a number, `ranks`: of how many writers.
  struct Unlisted {
    std::size_t there = 0;
    std::uint32_t ranks = 0;
    std::vector<std::string> missing = {};
  };
  Unlisted (*unlisted_files)(const std::vector<std::string_view>& files) = nullptr;
  // How files end that hold nothing but items: one that nothing points to was left over.
  std::string_view data_suffix = {};
  // Every item of them is recorded: what lies between items was left over too.
  bool records_every_item = false;

  // --- tensors

  // A tensor is one piece in one file: the tiles that it was put together from are gone.
  bool one_piece = false;
};

// What becomes of the files when a repair writes them anew.
enum class Rewrite : std::uint8_t {
  kNone,   // not written yet
  kIndex,  // a new index; data files keep their bytes, new tiles go into files of their own
  kFiles,  // every data file that changes
};

struct Format {
  std::string_view name = "unknown";          // the --json word: "dcp", "safetensors"
  std::string_view title = "unknown format";  // for people: "DCP"
  const Codec* codec = nullptr;               // of storages that name no other
  const FormatWriter* writer = nullptr;       // null where it is only read
  Rewrite rewrite = Rewrite::kNone;
  FormatTraits traits = {};
};

inline constexpr Format kUnknownFormat{};

}  // namespace shw
