#pragma once

namespace dsec {

/// Names in archives are bytes. libarchive takes them for text of the thread's locale and converts:
/// it composes what is decomposed, and looks for locales and converters in files, which are the
/// agent's where dsec-init unpacks. While an object of this lives, the calling thread's libarchive
/// leaves them alone.
class name_bytes {
public:
  enum class use {
    /// A name that is not ASCII cannot be converted, and stays as it is (with a warning).
    reading,
    /// A name that is UTF-8 is written as it is, the rest is marked as binary.
    writing,
  };

  explicit name_bytes(use what);
  ~name_bytes();
  name_bytes(const name_bytes&) = delete;
  name_bytes& operator=(const name_bytes&) = delete;

private:
  void* own_ = nullptr;
  void* previous_ = nullptr;
};

} // namespace dsec
