// For the static programs. What libarchive asks of the C library about character sets is answered
// here: locales and converters are files, and it would open those of the agent. The static libc and
// libarchive have them in objects of their own, which are then left out.

#include "backends/tree/name_bytes.hpp"

#include <archive.h>
#include <cerrno>
#include <iconv.h>
#include <langinfo.h>

struct archive_entry;

namespace {

const char* character_set = "ANSI_X3.4-1968";

} // namespace

extern "C" {

char* nl_langinfo(nl_item item) noexcept {
  return const_cast<char*>(item == CODESET ? character_set : "");
}

iconv_t iconv_open(const char*, const char*) {
  errno = EINVAL;
  return reinterpret_cast<iconv_t>(-1); // NOLINT: that is how it says no
}

std::size_t iconv(iconv_t, char**, std::size_t*, char**, std::size_t*) {
  errno = EILSEQ;
  return static_cast<std::size_t>(-1);
}

int iconv_close(iconv_t) {
  return 0;
}

/// libarchive's own lies in an object that refers to every format there is.
void __archive_write_entry_filetype_unsupported(archive* to, archive_entry*, const char*) {
  archive_set_error(to, -1, "unsupported kind of file");
}
}

namespace dsec {

name_bytes::name_bytes(use what) {
  character_set = what == use::reading ? "ANSI_X3.4-1968" : "UTF-8";
}

name_bytes::~name_bytes() = default;

} // namespace dsec
