#include "core/repair/write_files.h"

#include <algorithm>
#include <numeric>

#include "core/io/copy_range.h"

namespace shw {
namespace {

// What stands in one file: indices into LaidOut's lists.
struct Standing {
  std::vector<std::size_t> before, copies, made;
};

std::vector<Standing> by_file(const LaidOut& laid_out) {
  std::vector<Standing> files(laid_out.files.size());
  for (std::size_t i = 0; i < laid_out.before.size(); ++i)
    files[laid_out.before[i].file].before.push_back(i);
  for (std::size_t i = 0; i < laid_out.copies.size(); ++i)
    files[laid_out.copies[i].file].copies.push_back(i);
  for (std::size_t i = 0; i < laid_out.made.size(); ++i)
    files[laid_out.made[i].file].made.push_back(i);
  return files;
}

struct Writing {
  const Outputs& outputs;
  const LaidOut& laid_out;
  const MakeTile& make;
  WritableDirectory& directory;
  Progress* progress;
  std::vector<std::uint32_t> checksums;
  std::shared_ptr<const ByteSource> source = nullptr;  // the one that was copied from last
  std::string from = {};

  // Room for what comes later is left as a hole.
  static Status go_to(ByteSink& sink, std::uint64_t offset) {
    if (sink.position() > offset)
      return fail(ErrorKind::kIo, "two parts of a new file would lie at one place");
    return sink.position() == offset ? Status{} : sink.skip(offset - sink.position());
  }

  Status write_copy(const OutputCopy& copy, ByteSink& sink) {
    if (source == nullptr || from != copy.from) {
      SHW_TRY(source, outputs.source->directory()->open(copy.from));
      from = copy.from;
    }
    SHW_CHECK(go_to(sink, copy.offset));
    return copy_range(*source, copy.begin, copy.length, sink, progress);
  }
  Status write_made(std::size_t i, ByteSink& sink) {
    const MadeTile& made = laid_out.made[i];
    SHW_CHECK(go_to(sink, made.offset));
    SHW_TRY(checksums[i], make(made)(sink));
    if (sink.position() == made.offset + made.length) return {};
    return fail(ErrorKind::kIo, "another number of bytes was written than announced",
                Place{.file = laid_out.files[made.file].path,
                      .offset = made.offset,
                      .tensor = outputs.tensors[made.tensor].fqn});
  }

  Status write_parts(const Standing& file, ByteSink& sink) {
    struct FilePart {
      std::uint64_t offset;
      const OutputBytes* bytes = nullptr;
      const OutputCopy* copy = nullptr;
      std::size_t made = 0;
    };
    std::vector<FilePart> parts;
    for (std::size_t i : file.before) {
      const OutputBytes& bytes = laid_out.before[i];
      parts.push_back({bytes.offset, &bytes});
    }
    for (std::size_t i : file.copies) {
      const OutputCopy& copy = laid_out.copies[i];
      parts.push_back({copy.offset, nullptr, &copy});
    }
    for (std::size_t i : file.made) parts.push_back({laid_out.made[i].offset, nullptr, nullptr, i});
    std::stable_sort(parts.begin(), parts.end(),
                     [](const FilePart& a, const FilePart& b) { return a.offset < b.offset; });
    for (const FilePart& part : parts) {
      if (is_cancelled(progress)) return cancelled_error();
      if (part.bytes != nullptr) {
        SHW_CHECK(go_to(sink, part.offset));
        SHW_CHECK(sink.write(part.bytes->bytes));
      } else {
        SHW_CHECK(part.copy != nullptr ? write_copy(*part.copy, sink)
                                       : write_made(part.made, sink));
      }
    }
    return {};
  }

  Status write_file(std::uint32_t index, const Standing& file) {
    SHW_TRY(auto sink, directory.create(laid_out.files[index].path));
    SHW_CHECK(write_parts(file, *sink));
    SHW_CHECK(go_to(*sink, laid_out.files[index].size));
    if (auto seal = outputs.source->format().writer->seal_file; seal != nullptr) {
      SHW_TRY(auto around, seal(outputs, laid_out, index, checksums));
      for (const OutputBytes& part : around) SHW_CHECK(sink->write_at(part.offset, part.bytes));
    }
    return sink->finish();
  }
};

}  // namespace

Status write_files(const Outputs& outputs, const LaidOut& laid_out, const MakeTile& make,
                   WritableDirectory& directory, Progress* progress) {
  Writing writing{outputs,   laid_out, make,
                  directory, progress, std::vector<std::uint32_t>(laid_out.made.size())};
  std::vector<Standing> files = by_file(laid_out);
  for (std::uint32_t i = 0; i < files.size(); ++i) SHW_CHECK(writing.write_file(i, files[i]));
  return {};
}

}  // namespace shw
