#include "core/hdf5/hdf5_writer.h"

#include <hdf5.h>

#include <algorithm>
#include <array>
#include <deque>

#include "core/hdf5/hdf5_handle.h"
#include "core/hdf5/hdf5_types.h"

namespace shw {

struct Hdf5Writer::State {
  std::string name;
  Hdf5Handle file, text, with_groups;
  // Cached, because creating property lists and resolving paths from the root took a tenth of the
  // time for 100,000 virtual datasets.
  std::array<Hdf5Handle, static_cast<std::size_t>(Dtype::kCount)> types, virtual_lists;
  std::string folder_path;
  Hdf5Handle folder;

  hid_t type(Dtype dtype) {
    Hdf5Handle& known = types[static_cast<std::size_t>(dtype)];
    if (!known) known = hdf5_type(dtype);
    return known.get();
  }
  // The creation properties of virtual datasets with the dtype, without parts.
  hid_t virtual_dataset_properties(Dtype dtype);
  // The group for a new object. `left` is advanced to the rest of the path inside the group, or
  // stays if the group must still be created.
  hid_t folder_of(const char*& left);
  tl::unexpected<Error> failed(const std::string& what, const std::string& object = {}) const {
    return tl::unexpected<Error>(hdf5_error(what, name, object));
  }
  Status add_attribute(hid_t object, const Hdf5Attribute& attribute) const;
  Status add_attributes(hid_t object, const Hdf5Attributes& attributes) const;
  Result<Hdf5Handle> make(const Hdf5Dataset& dataset, const Hdf5Handle& space, hid_t creation);
  // Closes a dataset, which writes its buffered elements and can therefore fail.
  Status close_dataset(Hdf5Handle& dataset, const std::string& path) const {
    if (!dataset.close()) return failed("cannot write the dataset", path);
    return {};
  }
  Status add_column(const std::string& group, const Hdf5Column& column);
};

namespace {

std::vector<hsize_t> sizes_of(ExtentsView extents) {
  return {extents.begin(), extents.end()};
}

Hdf5Handle space_of(ExtentsView shape) {
  if (shape.empty()) return Hdf5Handle(H5Screate(H5S_SCALAR));
  auto sizes = sizes_of(shape);
  return Hdf5Handle(H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr));
}

bool select(const Hdf5Handle& space, const Box& box) {
  if (box.sizes.empty()) return H5Sselect_all(space.get()) >= 0;
  auto start = sizes_of(box.offsets), count = sizes_of(box.sizes);
  return H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(),
                             nullptr) >= 0;
}

// A part's elements as a selection in their dataset.
Hdf5Handle selection_of(const Hdf5Part& part) {
  Hdf5Handle space = space_of(Extents{part.length});
  auto start = static_cast<hsize_t>(part.first), step = static_cast<hsize_t>(part.step),
       count = static_cast<hsize_t>(part.count), run = static_cast<hsize_t>(part.run);
  if (H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, &start, &step, &count, &run) < 0) return {};
  return space;
}

// File locks are disabled: no other process knows the file yet, and parallel file systems reject
// locks.
Hdf5Handle file_access() {
  Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS));
#if H5_VERSION_GE(1, 12, 1) || (H5_VERS_MAJOR == 1 && H5_VERS_MINOR == 10 && H5_VERS_RELEASE >= 7)
  H5Pset_file_locking(access.get(), false, true);
#endif
  return access;
}

// Rows per batch: some million cells need little memory and few calls into the library.
constexpr std::uint64_t kRowsAtOnce = 1 << 16;

// Cells of 8 bytes in the order of the compound type; texts are pointers.
class RowBuffer final : public Hdf5Row {
 public:
  void put(std::int64_t whole) override { append(&whole); }
  void put(double real) override { append(&real); }
  void put(std::string text) override {
    const char* words = texts_.emplace_back(std::move(text)).c_str();
    append(&words);
  }
  const std::vector<char>& bytes() const { return bytes_; }
  void clear() {
    bytes_.clear();
    texts_.clear();
  }

 private:
  template <class T>
  void append(const T* cell) {
    static_assert(sizeof(T) == 8);
    const char* bytes = reinterpret_cast<const char*>(cell);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof(T));
  }
  std::vector<char> bytes_;
  std::deque<std::string> texts_;
};

Hdf5Handle row_type(const Hdf5Table& table, const Hdf5Handle& text) {
  Hdf5Handle type(H5Tcreate(H5T_COMPOUND, 8 * table.fields.size()));
  std::size_t at = 0;
  for (const Hdf5Field& field : table.fields) {
    const hid_t cell = field.kind == Hdf5Field::Kind::kWhole  ? H5T_NATIVE_INT64
                       : field.kind == Hdf5Field::Kind::kReal ? H5T_NATIVE_DOUBLE
                                                              : text.get();
    H5Tinsert(type.get(), field.name.c_str(), at, cell);
    at += 8;
  }
  return type;
}

std::vector<const char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  return pointers;
}

}  // namespace

bool has_hdf5() {
  return true;
}

Hdf5Writer::Hdf5Writer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Hdf5Writer::Hdf5Writer(Hdf5Writer&&) noexcept = default;
Hdf5Writer& Hdf5Writer::operator=(Hdf5Writer&&) noexcept = default;
Hdf5Writer::~Hdf5Writer() = default;

Result<Hdf5Writer> Hdf5Writer::create(const std::string& path, std::string name) {
  disable_hdf5_messages();
  auto state = std::make_unique<State>();
  state->name = std::move(name);
  Hdf5Handle access = file_access();
  state->file = Hdf5Handle(H5Fcreate(path.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, access.get()));
  if (!state->file) return state->failed("cannot make the file");
  state->text = Hdf5Handle(H5Tcopy(H5T_C_S1));
  H5Tset_size(state->text.get(), H5T_VARIABLE);
  H5Tset_cset(state->text.get(), H5T_CSET_UTF8);
  state->with_groups = Hdf5Handle(H5Pcreate(H5P_LINK_CREATE));
  H5Pset_create_intermediate_group(state->with_groups.get(), 1);
  H5Pset_char_encoding(state->with_groups.get(), H5T_CSET_UTF8);
  return Hdf5Writer(std::move(state));
}

Status Hdf5Writer::State::add_attribute(hid_t object, const Hdf5Attribute& attribute) const {
  auto add = [&](hid_t type, const Hdf5Handle& space, const void* bytes) -> Status {
    Hdf5Handle made(
        H5Acreate2(object, attribute.name.c_str(), type, space.get(), H5P_DEFAULT, H5P_DEFAULT));
    if (!made || H5Awrite(made.get(), type, bytes) < 0)
      return failed("cannot write the attribute " + attribute.name);
    return {};
  };
  if (const auto* number = std::get_if<std::int64_t>(&attribute.value))
    return add(H5T_NATIVE_INT64, space_of({}), number);
  if (const auto* one = std::get_if<std::string>(&attribute.value)) {
    const char* words = one->c_str();
    return add(text.get(), space_of({}), &words);
  }
  auto words = pointers_to(std::get<std::vector<std::string>>(attribute.value));
  return add(text.get(), space_of(Extents{static_cast<std::int64_t>(words.size())}), words.data());
}

Status Hdf5Writer::State::add_attributes(hid_t object, const Hdf5Attributes& attributes) const {
  for (const Hdf5Attribute& attribute : attributes) SHW_CHECK(add_attribute(object, attribute));
  return {};
}

Status Hdf5Writer::set_attributes(const std::string& group, const Hdf5Attributes& attributes) {
  hid_t file = state_->file.get();
  // Opens the root, or a group created by an earlier call.
  Hdf5Handle object(H5Oopen(file, group.c_str(), H5P_DEFAULT));
  if (!object) {
    H5Eclear2(H5E_DEFAULT);
    object = Hdf5Handle(
        H5Gcreate2(file, group.c_str(), state_->with_groups.get(), H5P_DEFAULT, H5P_DEFAULT));
  }
  if (!object) return state_->failed("cannot make the group", group);
  return state_->add_attributes(object.get(), attributes);
}

Result<Hdf5Handle> Hdf5Writer::State::make(const Hdf5Dataset& dataset, const Hdf5Handle& space,
                                           hid_t creation) {
  if (!space || creation < 0) return failed("cannot describe the dataset", dataset.path);
  const char* left = dataset.path.c_str();
  const hid_t group = folder_of(left);
  Hdf5Handle made(H5Dcreate2(group, left, type(dataset.dtype), space.get(), with_groups.get(),
                             creation, H5P_DEFAULT));
  if (!made) return failed("cannot make the dataset", dataset.path);
  SHW_CHECK(add_attributes(made.get(), dataset.attributes));
  return made;
}

hid_t Hdf5Writer::State::virtual_dataset_properties(Dtype dtype) {
  Hdf5Handle& known = virtual_lists[static_cast<std::size_t>(dtype)];
  if (!known) {
    known = Hdf5Handle(H5Pcreate(H5P_DATASET_CREATE));
    auto loud = missing_element_marker(dtype);
    H5Pset_fill_value(known.get(), type(dtype), loud.data());
  }
  // Removes the parts of the previous dataset.
  if (H5Pset_layout(known.get(), H5D_CONTIGUOUS) < 0) return H5I_INVALID_HID;
  return known.get();
}

hid_t Hdf5Writer::State::folder_of(const char*& left) {
  const std::string_view whole(left);
  const std::string_view parent = whole.substr(0, whole.rfind('/') + 1);
  if (parent != folder_path || !folder) {
    folder = Hdf5Handle(H5Gopen2(file.get(), std::string(parent).c_str(), H5P_DEFAULT));
    if (!folder) H5Eclear2(H5E_DEFAULT);
    folder_path = parent;
  }
  if (!folder) return file.get();
  left += parent.size();
  return folder.get();
}

Status Hdf5Writer::add_external(const Hdf5Dataset& dataset, std::span<const Hdf5Segment> segments) {
  Hdf5Handle creation(H5Pcreate(H5P_DATASET_CREATE));
  // Never write fill values, because HDF5 would write them into the checkpoint's files.
  H5Pset_fill_time(creation.get(), H5D_FILL_TIME_NEVER);
  for (const Hdf5Segment& segment : segments) {
    if (H5Pset_external(creation.get(), segment.file.c_str(), static_cast<off_t>(segment.offset),
                        segment.length) < 0)
      return state_->failed("cannot map the bytes of " + segment.file, dataset.path);
  }
  SHW_TRY(Hdf5Handle made, state_->make(dataset, space_of(dataset.shape), creation.get()));
  return state_->close_dataset(made, dataset.path);
}

Status Hdf5Writer::add_virtual(const Hdf5Dataset& dataset, std::span<const Hdf5Part> parts) {
  const hid_t creation = state_->virtual_dataset_properties(dataset.dtype);
  Hdf5Handle space = space_of(dataset.shape);
  for (const Hdf5Part& part : parts) {
    Hdf5Handle elements = selection_of(part);
    if (!elements || !select(space, part.at) ||
        H5Pset_virtual(creation, space.get(), ".", part.dataset.c_str(), elements.get()) < 0)
      return state_->failed("cannot map " + part.dataset, dataset.path);
  }
  H5Sselect_all(space.get());
  SHW_TRY(Hdf5Handle made, state_->make(dataset, space, creation));
  return state_->close_dataset(made, dataset.path);
}

Status Hdf5Writer::add_stack_slice(const Hdf5Dataset& dataset, const std::string& stack,
                                   std::int64_t count, std::int64_t index) {
  Box part{Extents(dataset.shape.size() + 1, 0), dataset.shape};
  part.offsets[0] = index;
  part.sizes.insert(part.sizes.begin(), 1);
  Extents all = dataset.shape;
  all.insert(all.begin(), count);
  const hid_t creation = state_->virtual_dataset_properties(dataset.dtype);
  Hdf5Handle space = space_of(dataset.shape), elements = space_of(all);
  if (!elements || !select(elements, part) ||
      H5Pset_virtual(creation, space.get(), ".", stack.c_str(), elements.get()) < 0)
    return state_->failed("cannot map " + stack, dataset.path);
  SHW_TRY(Hdf5Handle made, state_->make(dataset, space, creation));
  return state_->close_dataset(made, dataset.path);
}

Status Hdf5Writer::add_copied(const Hdf5Dataset& dataset,
                              const std::function<Status(const WriteBox&)>& write) {
  Hdf5Handle creation(H5Pcreate(H5P_DATASET_CREATE));
  H5Pset_fill_time(creation.get(), H5D_FILL_TIME_NEVER);
  SHW_TRY(Hdf5Handle made, state_->make(dataset, space_of(dataset.shape), creation.get()));
  if (!write) return state_->close_dataset(made, dataset.path);
  const hid_t type = state_->type(dataset.dtype);
  Status written = write([&](const Box& box, BytesView bytes) -> Status {
    Hdf5Handle from = space_of(box.sizes), to = space_of(dataset.shape);
    if (!select(to, box) ||
        H5Dwrite(made.get(), type, from.get(), to.get(), H5P_DEFAULT, bytes.data()) < 0)
      return state_->failed("cannot write the elements", dataset.path);
    return {};
  });
  if (written) return state_->close_dataset(made, dataset.path);
  made.close();
  H5Ldelete(state_->file.get(), dataset.path.c_str(), H5P_DEFAULT);
  return written;
}

Status Hdf5Writer::State::add_column(const std::string& group, const Hdf5Column& column) {
  const std::string path = group + "/" + column.name;
  auto add = [&](hid_t stored, std::size_t count, const void* cells) -> Status {
    Hdf5Handle space = space_of(Extents{static_cast<std::int64_t>(count)});
    Hdf5Handle made(H5Dcreate2(file.get(), path.c_str(), stored, space.get(), with_groups.get(),
                               H5P_DEFAULT, H5P_DEFAULT));
    if (!made ||
        (count != 0 && H5Dwrite(made.get(), stored, H5S_ALL, H5S_ALL, H5P_DEFAULT, cells) < 0))
      return failed("cannot write the column", path);
    return close_dataset(made, path);
  };
  if (const auto* whole = std::get_if<std::vector<std::int64_t>>(&column.cells))
    return add(H5T_NATIVE_INT64, whole->size(), whole->data());
  auto words = pointers_to(std::get<std::vector<std::string>>(column.cells));
  return add(text.get(), words.size(), words.data());
}

Status Hdf5Writer::add_columns(const std::string& group, std::span<const Hdf5Column> columns) {
  for (const Hdf5Column& column : columns) SHW_CHECK(state_->add_column(group, column));
  return {};
}

Status Hdf5Writer::add_table(const Hdf5Table& table, Progress* progress) {
  const hid_t file = state_->file.get();
  Hdf5Handle type = row_type(table, state_->text);
  Hdf5Handle space = space_of(Extents{static_cast<std::int64_t>(table.rows)});
  Hdf5Handle made(H5Dcreate2(file, table.path.c_str(), type.get(), space.get(),
                             state_->with_groups.get(), H5P_DEFAULT, H5P_DEFAULT));
  if (!made) return state_->failed("cannot make the table", table.path);
  Hdf5Attributes attributes = table.attributes;
  std::vector<std::string> units;
  for (const Hdf5Field& field : table.fields) units.push_back(field.unit);
  attributes.push_back({"units", std::move(units)});
  SHW_CHECK(state_->add_attributes(made.get(), attributes));
  RowBuffer rows;
  for (std::uint64_t first = 0; first < table.rows; first += kRowsAtOnce) {
    if (is_cancelled(progress)) return cancelled_error();
    const std::uint64_t last = std::min(table.rows, first + kRowsAtOnce);
    rows.clear();
    for (std::uint64_t row = first; row < last; ++row) table.fill(row, rows);
    Box box{{static_cast<std::int64_t>(first)}, {static_cast<std::int64_t>(last - first)}};
    Hdf5Handle from = space_of(box.sizes);
    if (!select(space, box) || rows.bytes().size() != (last - first) * H5Tget_size(type.get()) ||
        H5Dwrite(made.get(), type.get(), from.get(), space.get(), H5P_DEFAULT,
                 rows.bytes().data()) < 0)
      return state_->failed("cannot write the table", table.path);
    if (progress != nullptr) progress->add(last - first);
  }
  return state_->close_dataset(made, table.path);
}

Status Hdf5Writer::close() {
  State& state = *state_;
  state.folder = Hdf5Handle();
  for (Hdf5Handle& type : state.types) type = Hdf5Handle();
  for (Hdf5Handle& list : state.virtual_lists) list = Hdf5Handle();
  state.text = Hdf5Handle();
  state.with_groups = Hdf5Handle();
  // Flushes before closing, since a failed close does not report what was not written.
  if (H5Fflush(state.file.get(), H5F_SCOPE_LOCAL) < 0 || !state.file.close())
    return state.failed("cannot be written");
  return {};
}

}  // namespace shw
