// The fingerprint of elements as they were read, by their indices in the tensor.
#pragma once

#include "core/program/tile_job.h"
#include "core/tensor/fingerprint.h"

namespace shw {

// `job.layouts` is canonical: where elements lie from `in` on, in bytes, and which ones of the
// tensor they are, in elements. Each counts as the job will write it.
void add_elements(Fingerprint& to, const std::byte* in, const TileJob& job);

}  // namespace shw
