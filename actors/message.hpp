#pragma once

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/meta/type_name.hpp>

/// How messages print: for errors, logs and the event hash of a simulation. None of them is ever
/// serialised (nothing here crosses a process border), so all are declared local-only. Actor
/// handles and callbacks do not print: an address would make two equal runs differ.

/// `dsec::type` prints as its name and the members that are given, of an object `x`. At the global
/// namespace.
#define DSEC_PRINTS(type, ...)                                                                     \
  namespace dsec {                                                                                 \
  template <class Inspector>                                                                       \
  typename Inspector::result_type inspect(Inspector& f, [[maybe_unused]] type& x) {                \
    return f(caf::meta::type_name(#type) __VA_OPT__(, ) __VA_ARGS__);                              \
  }                                                                                                \
  }

/// The same of a type that is sent.
#define DSEC_MESSAGE(type, ...)                                                                    \
  DSEC_PRINTS(type, __VA_ARGS__)                                                                   \
  CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::type)
