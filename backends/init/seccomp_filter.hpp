#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace dsec::init {

/// Builds one seccomp program: rules in order, the first that matches decides, what none matches is
/// allowed. Foreign architectures end the process. Argument rules compare the low 32 bits, which is
/// what the kernel's own int arguments are: high bits cannot be used to slip past.
class seccomp_filter {
public:
  seccomp_filter();

  /// `number` fails with `error_number`.
  void refuse(long number, int error_number);

  /// `number` fails when its argument is one of `values`.
  void refuse_values(long number, unsigned argument, std::initializer_list<std::uint32_t> values,
                     int error_number);

  /// `number` fails unless its argument is one of `values`.
  void allow_only(long number, unsigned argument, std::initializer_list<std::uint32_t> values,
                  int error_number);

  /// `number` fails when (argument & mask) == value.
  void refuse_masked(long number, unsigned argument, std::uint32_t mask, std::uint32_t value,
                     int error_number);

  /// `number` fails when (argument & bits) is not 0.
  void refuse_bits(long number, unsigned argument, std::uint32_t bits, int error_number);

  /// `number` with argument `a` equal to `value` fails unless argument `b` is one of `values`.
  void allow_only_where(long number, unsigned a, std::uint32_t value, unsigned b,
                        std::initializer_list<std::uint32_t> values, int error_number);

  /// Installs it for this thread and all it will start. Needs no_new_privs, or CAP_SYS_ADMIN in the
  /// own user namespace. Returns 0 or an errno value.
  int install();

private:
  /// Places `body` behind a test of the system call's number; it runs with anything in the
  /// accumulator.
  void guarded(long number, std::vector<sock_filter> body);

  std::vector<sock_filter> program_;
};

} // namespace dsec::init
