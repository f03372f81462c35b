#include "backends/tree/name_bytes.hpp"

#include <locale.h>

namespace dsec {

name_bytes::name_bytes(use what) {
  own_ = ::newlocale(LC_CTYPE_MASK, what == use::reading ? "C" : "C.UTF-8", nullptr);
  if (own_)
    previous_ = ::uselocale(static_cast<locale_t>(own_));
}

name_bytes::~name_bytes() {
  if (!own_)
    return;
  ::uselocale(static_cast<locale_t>(previous_));
  ::freelocale(static_cast<locale_t>(own_));
}

} // namespace dsec
