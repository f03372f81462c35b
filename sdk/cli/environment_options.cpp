#include "sdk/cli/environment_options.hpp"

#include "backends/rootfs/layer_store.hpp"
#include "sdk/cli/numbers.hpp"
#include "sdk/front/convert.hpp"

#include <charconv>
#include <cstdlib>

namespace dsec {

result<std::uint64_t> parse_bytes(const std::string& name, const std::string& text) {
  std::uint64_t number = 0;
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  auto unit = std::string_view{end, static_cast<std::size_t>(text.data() + text.size() - end)};
  int shift = -1;
  if (unit.empty() || unit == "B")
    shift = 0;
  for (auto [letter, bits] : {std::pair{'K', 10}, {'M', 20}, {'G', 30}, {'T', 40}})
    if (!unit.empty() && (unit[0] & ~0x20) == letter
        && (unit.size() == 1 || unit.substr(1) == "iB" || unit.substr(1) == "B"))
      shift = bits;
  if (failed != std::errc{} || shift < 0 || number > (~0ull >> shift))
    return error{errc::invalid_argument,
                 fmt::format("{} \"{}\": a number of bytes, with K, M, G or T if wanted", name,
                             text)};
  return number << shift;
}

std::pair<std::string, std::string> parse_variable(const std::string& text) {
  auto equals = text.find('=');
  if (equals != std::string::npos)
    return {text.substr(0, equals), text.substr(equals + 1)};
  const char* own = std::getenv(text.c_str());
  return {text, own ? own : ""};
}

void environment_options::add_to(CLI::App& command) {
  command.add_option("--image", images, "Layer by name or digest; repeat it, base first")
    ->required()
    ->allow_extra_args(false);
  command.add_option("--job", job, "Job that it belongs to")->capture_default_str();
  command.add_option("--key", key, "Idempotency key: the same one returns the same sandbox");
  command.add_option("--memory", memory, "Memory limit, as 512M");
  add_whole(command, "--pids", pids, "Limit of processes", processes_max, processes_min);
  command.add_option("--cpus", cpus, "Cores, as 0.5");
  command.add_option("--disk", disk, "Limit of what is written, as 2G");
  command.add_flag("--allow-setuid", allow_setuid, "Let setuid programs gain rights inside");
  clocks.add_to(command);
}

result<create_options> environment_options::resolve(const std::filesystem::path& data_dir) const {
  create_options x;
  x.idempotency_key = key;
  layer_store store{data_dir / "store"};
  for (const auto& image : images) {
    auto digest = store.resolve(image);
    if (!digest)
      return digest.error();
    for (std::size_t i = 0; i < x.environment.layers.size(); ++i)
      if (x.environment.layers[i] == *digest)
        return error{errc::invalid_argument,
                     fmt::format("--image {}: the same layer as --image {}", image, images[i])};
    x.environment.layers.push_back(*digest);
  }
  auto& limits = x.environment.limits;
  for (auto [name, text, to] : {std::tuple{"--memory", &memory, &limits.memory_bytes},
                                std::tuple{"--disk", &disk, &limits.disk_bytes}}) {
    if (text->empty())
      continue;
    auto bytes = parse_bytes(name, *text);
    if (!bytes)
      return bytes.error();
    *to = *bytes;
  }
  if (pids)
    limits.processes = *pids;
  if (!cpus.empty()) {
    auto milli = parse_thousandths("--cpus", cpus, cpu_milli_min / 1000., cpu_milli_max / 1000.);
    if (!milli)
      return milli.error();
    limits.cpu_milli = static_cast<std::uint32_t>(*milli);
  }
  x.environment.allow_setuid = allow_setuid;
  if (auto valid = validate(x.environment); !valid)
    return valid.error();
  auto given = clocks.apply(base_clocks);
  if (!given)
    return given.error();
  x.clocks = *given;
  return x;
}

result<std::pair<std::string, wire::Sandbox::Client>>
environment_options::create(client& at, const create_options& wanted) const {
  auto find = at.dsec.jobRequest();
  find.setName(job.c_str());
  wire::Job::Client owner = nullptr;
  auto found = wait(at, find.send());
  if (found) {
    owner = found->getJob();
  } else if (found.error().code != errc::not_found) {
    return found.error();
  } else {
    auto open = at.dsec.openJobRequest();
    open.setName(job.c_str());
    open.initLease();
    auto opened = wait(at, open.send());
    if (!opened)
      return opened.error();
    owner = opened->getJob();
  }
  auto create = owner.createRequest();
  auto item = create.initItem();
  item.setIdempotencyKey(wanted.idempotency_key.c_str());
  wire::write(wanted.environment, item.initEnvironment());
  wire::write(wanted.clocks, item.initClocks());
  auto answer = wait(at, create.send());
  if (!answer)
    return answer.error();
  auto created = answer->getCreated();
  if (error e; wire::failed(created.getError(), e))
    return e;
  return std::pair{wire::text(created.getId()), wire::Sandbox::Client{created.getSandbox()}};
}

} // namespace dsec
