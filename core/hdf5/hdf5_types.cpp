#include "core/hdf5/hdf5_types.h"

#include <hdf5.h>

#include <algorithm>
#include <array>

namespace shw {
namespace {

struct FloatForm {
  std::size_t size, exponent_at, exponent_bits, mantissa_bits, bias;
};

// The sign is the top bit, the mantissa starts at bit 0. All codes of the three types were verified
// with HDF5 and h5py.
Hdf5Handle hdf5_small_float_type(const FloatForm& form) {
  Hdf5Handle type(H5Tcopy(H5T_IEEE_F32LE));
  H5Tset_fields(type.get(), form.size * 8 - 1, form.exponent_at, form.exponent_bits, 0,
                form.mantissa_bits);
  H5Tset_precision(type.get(), form.size * 8);
  H5Tset_size(type.get(), form.size);
  H5Tset_ebias(type.get(), form.bias);
  return type;
}

Hdf5Handle float16_type() {
  return hdf5_small_float_type({2, 10, 5, 10, 15});
}
Hdf5Handle bfloat16_type() {
  return hdf5_small_float_type({2, 7, 8, 7, 127});
}

Hdf5Handle copy_of_type(hid_t type) {
  return Hdf5Handle(H5Tcopy(type));
}

// The layout of h5py's complex numbers.
Hdf5Handle complex_of(const Hdf5Handle& part) {
  std::size_t size = H5Tget_size(part.get());
  Hdf5Handle type(H5Tcreate(H5T_COMPOUND, 2 * size));
  H5Tinsert(type.get(), "r", 0, part.get());
  H5Tinsert(type.get(), "i", size, part.get());
  return type;
}

// The layout of h5py's bool.
Hdf5Handle bool_type() {
  Hdf5Handle type(H5Tenum_create(H5T_STD_I8LE));
  const signed char no = 0, yes = 1;
  H5Tenum_insert(type.get(), "FALSE", &no);
  H5Tenum_insert(type.get(), "TRUE", &yes);
  return type;
}

Hdf5Handle bytes_of_size(std::uint32_t size) {
  return copy_of_type(size == 4 ? H5T_STD_U32LE : size == 2 ? H5T_STD_U16LE : H5T_STD_U8LE);
}

bool is_signed(Dtype dtype) {
  constexpr std::array kSigned{Dtype::kInt8,  Dtype::kInt16, Dtype::kInt32,
                               Dtype::kInt64, Dtype::kQint8, Dtype::kQint32};
  return std::find(kSigned.begin(), kSigned.end(), dtype) != kSigned.end();
}

std::vector<std::byte> little_endian(std::uint64_t bits, std::size_t size) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < size; ++i) bytes.push_back(std::byte(bits >> (8 * i) & 0xFF));
  return bytes;
}

std::vector<std::byte> repeat_bytes(std::vector<std::byte> part) {
  part.insert(part.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(part.size()));
  return part;
}

}  // namespace

Hdf5Handle hdf5_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat64:
      return copy_of_type(H5T_IEEE_F64LE);
    case Dtype::kFloat32:
      return copy_of_type(H5T_IEEE_F32LE);
    case Dtype::kFloat16:
      return float16_type();
    case Dtype::kBfloat16:
      return bfloat16_type();
    case Dtype::kFloat8E5m2:
      return hdf5_small_float_type({1, 2, 5, 2, 15});
    case Dtype::kInt8:
    case Dtype::kQint8:
      return copy_of_type(H5T_STD_I8LE);
    case Dtype::kInt16:
      return copy_of_type(H5T_STD_I16LE);
    case Dtype::kInt32:
    case Dtype::kQint32:
      return copy_of_type(H5T_STD_I32LE);
    case Dtype::kInt64:
      return copy_of_type(H5T_STD_I64LE);
    case Dtype::kUint64:
      return copy_of_type(H5T_STD_U64LE);
    case Dtype::kBool:
      return bool_type();
    case Dtype::kComplex32:
      return complex_of(float16_type());
    case Dtype::kBcomplex32:
      return complex_of(bfloat16_type());
    case Dtype::kComplex64:
      return complex_of(copy_of_type(H5T_IEEE_F32LE));
    case Dtype::kComplex128:
      return complex_of(copy_of_type(H5T_IEEE_F64LE));
    default:
      return bytes_of_size(size_of(dtype));
  }
}

std::vector<std::byte> missing_element_marker(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat64:
      return little_endian(0x7FF8'0000'0000'0000, 8);
    case Dtype::kFloat32:
      return little_endian(0x7FC0'0000, 4);
    case Dtype::kFloat16:
      return little_endian(0x7E00, 2);
    case Dtype::kBfloat16:
      return little_endian(0x7FC0, 2);
    case Dtype::kFloat8E4m3fn:
      return little_endian(0x7F, 1);
    case Dtype::kFloat8E5m2:
      return little_endian(0x7E, 1);
    case Dtype::kFloat8E4m3fnuz:
    case Dtype::kFloat8E5m2fnuz:
      return little_endian(0x80, 1);
    case Dtype::kComplex32:
      return repeat_bytes(missing_element_marker(Dtype::kFloat16));
    case Dtype::kBcomplex32:
      return repeat_bytes(missing_element_marker(Dtype::kBfloat16));
    case Dtype::kComplex64:
      return repeat_bytes(missing_element_marker(Dtype::kFloat32));
    case Dtype::kComplex128:
      return repeat_bytes(missing_element_marker(Dtype::kFloat64));
    default:
      break;
  }
  const std::size_t size = size_of(dtype);
  const std::uint64_t top = std::uint64_t{1} << (8 * size - 1);
  return little_endian(is_signed(dtype) ? top : ~std::uint64_t{0}, size);
}

}  // namespace shw
