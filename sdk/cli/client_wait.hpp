#pragma once

#include "backends/container/wire.hpp"
#include "sdk/cli/client.hpp"

#include <kj/exception.h>

namespace dsec {

template <class Results>
result<capnp::Response<Results>> wait(client& from, kj::Promise<capnp::Response<Results>> answer) {
  using response = result<capnp::Response<Results>>;
  return answer
    .then(
      [](capnp::Response<Results>&& x) -> response {
        if constexpr (requires { x.getError(); })
          if (error e; wire::failed(x.getError(), e))
            return e;
        return kj::mv(x);
      },
      [](kj::Exception&& e) -> response { return wire::broken("talk to the runtime", e); })
    .wait(from.io.waitScope);
}

} // namespace dsec
