#include "state/digest.hpp"

#include <openssl/evp.h>

#include <array>
#include <cstdlib>

namespace dsec {

struct sha256::context {
  EVP_MD_CTX* openssl = EVP_MD_CTX_new();

  ~context() {
    EVP_MD_CTX_free(openssl);
  }
};

namespace {

/// OpenSSL refuses SHA-256 only when it has no memory or no provider: nothing can go on then.
void require(int ok) {
  if (ok != 1)
    std::abort();
}

} // namespace

sha256::sha256() : context_{std::make_unique<context>()} {
  require(EVP_DigestInit_ex(context_->openssl, EVP_sha256(), nullptr));
}

sha256::~sha256() = default;
sha256::sha256(sha256&&) noexcept = default;
sha256& sha256::operator=(sha256&&) noexcept = default;

void sha256::add(std::string_view bytes) {
  require(EVP_DigestUpdate(context_->openssl, bytes.data(), bytes.size()));
}

std::string sha256::hex() && {
  static constexpr char digits[] = "0123456789abcdef";
  std::array<unsigned char, 32> raw{};
  require(EVP_DigestFinal_ex(context_->openssl, raw.data(), nullptr));
  std::string text;
  text.reserve(2 * raw.size());
  for (auto byte : raw) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

} // namespace dsec
