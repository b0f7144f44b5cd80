// A torch.save file in the format before zip: the only one up to torch 1.5, and still written with
// _use_new_zipfile_serialization=False.
//
//   file     = magic protocol system object keys storage*
//   magic    = pickle of 0x1950a86a20f9469cfc6c      protocol = pickle of 1001
//   system   = pickle of {"protocol_version", "little_endian", "type_sizes"}
//   object   = pickle, whose persistent ids are ("storage", class, key, location, count, None)
//   keys     = pickle of the list of keys
//   storage  = count (8 bytes, little-endian) element*      in the order of the keys
//
// Elements are little-endian whatever machine wrote them (THPStorage_writeFileRaw). There is no
// checksum.
#pragma once

#include <memory>

#include "core/formats/zip/zip.h"
#include "core/io/source.h"

namespace shw {

// Recognises the format by the first bytes, in any pickle protocol.
bool is_legacy_torch_file(BytesView first);
Result<bool> is_legacy_torch_file(const ByteSource& source);
// Recognises the tar archive that torch before 0.1.10 wrote.
bool is_tar_of_torch(BytesView first);

// Presents the object as the record data.pkl and each storage as data/KEY. A storage beyond the end
// of a truncated file keeps the length from its pickle. kDamaged if pickles, keys and counts
// contradict each other or torch's format.
Result<ZipReader> read_legacy_torch_file(std::shared_ptr<const ByteSource> source);

}  // namespace shw
