#include "backends/container/build_id.hpp"

#include <fmt/format.h>

#include <cstring>
#include <elf.h>
#include <fstream>
#include <vector>

namespace dsec {

namespace {

constexpr std::size_t notes_bytes_max = 64 << 10;

bool read_at(std::ifstream& file, std::uint64_t offset, void* to, std::size_t bytes) {
  file.seekg(static_cast<std::streamoff>(offset));
  return static_cast<bool>(file.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes)));
}

std::size_t padded(std::size_t bytes) {
  return (bytes + 3) & ~std::size_t{3};
}

std::string find_build_id(const std::vector<char>& notes) {
  std::size_t at = 0;
  Elf64_Nhdr note;
  while (at + sizeof note <= notes.size()) {
    std::memcpy(&note, notes.data() + at, sizeof note);
    auto name = at + sizeof note;
    auto content = name + padded(note.n_namesz);
    if (content + note.n_descsz > notes.size())
      break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4
        && std::memcmp(notes.data() + name, "GNU", 4) == 0) {
      std::string hex;
      for (std::size_t i = 0; i < note.n_descsz; ++i)
        hex += fmt::format("{:02x}", static_cast<unsigned char>(notes[content + i]));
      return hex;
    }
    at = content + padded(note.n_descsz);
  }
  return {};
}

} // namespace

std::string build_id(const std::filesystem::path& program) {
  std::ifstream file{program, std::ios::binary};
  Elf64_Ehdr header;
  if (!file || !read_at(file, 0, &header, sizeof header)
      || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0
      || header.e_ident[EI_CLASS] != ELFCLASS64)
    return {};
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part;
    if (!read_at(file, header.e_phoff + i * sizeof part, &part, sizeof part))
      return {};
    if (part.p_type != PT_NOTE || part.p_filesz > notes_bytes_max)
      continue;
    std::vector<char> notes(part.p_filesz);
    if (!read_at(file, part.p_offset, notes.data(), notes.size()))
      return {};
    if (auto found = find_build_id(notes); !found.empty())
      return found;
  }
  return {};
}

} // namespace dsec
