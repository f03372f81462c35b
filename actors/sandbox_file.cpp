#include "actors/errors.hpp"
#include "actors/sandbox_parts.hpp"

#include <caf/send.hpp>

#include <utility>

namespace dsec::sandbox_parts {

void start_files(self_pointer self) {
  auto& data = self->state;
  for (auto& [ticket, x] : data.files) {
    if (std::exchange(x.started, true))
      continue;
    data.services.kernel.file(
      data.record.id, *x.request,
      [to = sandbox_inside{self}, at = ticket](result<file_reply> reply) {
        caf::anon_send(to,
                       file_done{at, std::make_shared<const result<file_reply>>(std::move(reply))});
      });
  }
}

void finish_files(self_pointer self) {
  auto& data = self->state;
  auto over = ended(data);
  if (!over)
    return;
  for (auto& [ticket, x] : std::exchange(data.files, {}))
    x.answer.deliver(to_caf(*over));
  for (auto& [ticket, answer] : std::exchange(data.stats, {}))
    answer.deliver(to_caf(*over));
}

} // namespace dsec::sandbox_parts
