// A file of torch.save in the form before zip: what torch wrote up to 1.5, and what
// _use_new_zipfile_serialization=False still asks for.
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

#include "core/formats/common/zip.h"
#include "core/io/source.h"

namespace shw {

// By first bytes, of any protocol.
bool is_before_zip(BytesView first);
Result<bool> is_before_zip(const ByteSource& source);
// The tar archive of before torch 0.1.10.
bool is_tar_of_torch(BytesView first);

// The object as the record data.pkl, each storage as data/KEY. A storage that the file is too short
// for is there as long as its pickle says. kDamaged: the five pickles, the keys and the counts
// contradict each other or torch.
Result<ZipReader> read_before_zip(std::shared_ptr<const ByteSource> source);

}  // namespace shw
