#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace dsec {

/// SHA-256 over bytes given piece by piece.
class sha256 {
public:
  sha256();
  ~sha256();

  sha256(sha256&&) noexcept;
  sha256& operator=(sha256&&) noexcept;

  void add(std::string_view bytes);

  /// 64 lower-case hex digits. Ends the object's use.
  std::string hex() &&;

private:
  struct context;
  std::unique_ptr<context> context_;
};

} // namespace dsec
