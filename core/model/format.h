// The properties of a format that other code may rely on. The format rows are in core/formats, one
// folder per format; code outside must not compare format names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shw {

struct ItemReader;    // core/formats/common/item_reader.h
struct FormatWriter;  // core/formats/format_writer.h

// How the bytes of an item are encoded, and the reader for them.
struct Codec {
  std::string_view name;               // "torch-zip", "raw"
  const ItemReader* reader = nullptr;  // null in checkpoints without data
  bool is_without_header = false;      // items contain only elements, without a header
};

// Each trait names the code that uses it. The defaults are the conservative choice.
struct FormatTraits {
  // --- where names, boxes and places are recorded

  // Names and boxes are recorded in an index apart from the data: changing them rewrites no data,
  // and a record may point to another entry's item. Otherwise they are stored in the data files.
  bool has_index = false;
  // All of the index is in `index_file`: one rename replaces it, so relabels can be done in place.
  bool one_index_file = false;
  // Every save writes the index last: newer data files belong to another save.
  bool index_comes_last = false;
  std::string_view index_file = {};  // name of the index in messages; the first of several
  // The name of a rank's index, if every rank has its own.
  std::string (*index_of_rank)(std::uint32_t rank) = nullptr;

  // --- data files

  // The rank that wrote a file, from its name; null if names do not tell.
  std::optional<std::uint32_t> (*writer_of_file)(std::string_view path) = nullptr;
  // The name of the data file of a rank, if every rank writes one, even without data.
  std::string (*file_of_rank)(std::uint32_t rank) = nullptr;
  // The file names that are missing, if no index lists the files and only their numbers tell.
  // `there`: files with a number; `ranks`: number of writers.
  struct Unlisted {
    std::size_t there = 0;
    std::uint32_t ranks = 0;
    std::vector<std::string> missing = {};
  };
  Unlisted (*unlisted_files)(const std::vector<std::string_view>& files) = nullptr;
  // Suffix of files that contain only items: an unreferenced file with it is a leftover.
  std::string_view data_suffix = {};
  // Every item of such a file is recorded: bytes between items are leftovers too.
  bool records_every_item = false;

  // --- tensors

  // A tensor is one piece in one file; the original chunks cannot be restored.
  bool has_one_piece_per_tensor = false;
  // The first part of every name is an item of the state dict, such as "model".
  bool names_have_items = false;
};

// How a repair rewrites the files of a format.
enum class Rewrite : std::uint8_t {
  kNone,   // not supported
  kIndex,  // a new index; data files are kept, new chunks go to new files
  kFiles,  // every changed data file
};

struct Format {
  std::string_view name = "unknown";          // the name in JSON: "dcp", "safetensors"
  std::string_view title = "unknown format";  // for people: "DCP"
  const Codec* codec = nullptr;               // default for storages without their own codec
  const FormatWriter* writer = nullptr;       // null: the format is read only
  Rewrite rewrite = Rewrite::kNone;
  FormatTraits traits = {};
};

inline constexpr Format kUnknownFormat{};

}  // namespace shw
