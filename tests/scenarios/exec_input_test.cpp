// What a command is given: its input, its script, its arguments and variables, unchanged.
#include "state/digest.hpp"
#include "tests/scenarios/exec_rig.hpp"

#include <atomic>

using namespace dsec;
using namespace dsec::test;
namespace utf = boost::unit_test;

namespace {

std::string sha256_hex(std::string_view bytes) {
  sha256 digest;
  digest.add(bytes);
  return std::move(digest).hex();
}

/// Zeros for as long as somebody asks.
class endless_input : public listener {
public:
  std::shared_ptr<input_source> input() override {
    return source_;
  }

  std::uint64_t asked() const {
    return source_->asked;
  }

private:
  struct zeros : input_source {
    std::atomic<std::uint64_t> asked{0};

    void read(std::function<void(std::string)> next) override {
      ++asked;
      next(std::string(64 << 10, '\0'));
    }
  };

  std::shared_ptr<zeros> source_ = std::make_shared<zeros>();
};

error refusal(const future<exec_result>& x) {
  auto got = x.get();
  BOOST_TEST_REQUIRE(!got);
  return got.error();
}

} // namespace

BOOST_AUTO_TEST_SUITE(exec_input, *utf::precondition(needs_root))

BOOST_FIXTURE_TEST_CASE(standard_input_is_empty_unless_it_is_given, exec_rig) {
  auto box = create();
  auto began = steady::now();
  for (auto* script : {"cat > /tmp/x", "cat > /tmp/x & wait", "exec cat > /tmp/x"})
    BOOST_TEST(value(box.exec(exec_spec::shell(script))).ok());
  BOOST_TEST(value(box.exec(exec_spec::shell("read a; echo $?"))).out == "1\n");
  BOOST_TEST(value(box.exec(exec_spec::shell("{ read a; echo $?; } & wait"))).out == "1\n");
  BOOST_TEST(value(box.exec(exec_spec{{"wc", "-c"}})).out == "0\n");
  auto streamed = std::make_shared<listener>();
  BOOST_TEST(value(box.start(exec_spec{{"wc", "-c"}}, streamed).result()).out == "0\n");
  exec_spec empty{{"wc", "-c"}};
  empty.stdin_bytes = "";
  BOOST_TEST(value(box.exec(empty)).out == "0\n");
  BOOST_TEST(since(began).count() < 5000);
}

BOOST_FIXTURE_TEST_CASE(a_script_reaches_the_shell_as_it_is, exec_rig) {
  auto box = create();
  auto out = [&](const std::string& script) {
    auto x = value(box.exec(exec_spec::shell(script)));
    BOOST_TEST(x.err == "");
    return x.out;
  };
  BOOST_TEST(out("cat <<EOF\n  two spaces\n\ttab\nEOF\necho after\n")
             == "  two spaces\n\ttab\nafter\n");
  BOOST_TEST(out("cat <<-EOF\n\t\tstripped\n\tEOF\n") == "stripped\n");
  BOOST_TEST(out("\tcat <<'E F'\n$HOME `x` \\n\nE F\n") == "$HOME `x` \\n\n");
  BOOST_TEST(out("echo \"a 'b \\\"c\\\"' $(echo \"d $(echo 'e f')\")\"") == "a 'b \"c\"' d e f\n");
  BOOST_TEST(out("printf '%s' 'a\r\nb\r\n'") == "a\r\nb\r\n");
  BOOST_TEST(out("echo one \\\n two") == "one two\n");
  BOOST_TEST(out("echo x\\") == "x\\\n");
  BOOST_TEST(out("# nothing but a comment") == "");
  BOOST_TEST(out("") == "");
  BOOST_TEST(out("\n\n") == "");
  BOOST_TEST(out("printf '%s' '\xff\xfe\x01'") == "\xff\xfe\x01");
  // A terminator with a carriage return is another word: the script says so, not we.
  auto crlf = value(box.exec(exec_spec::shell("cat <<EOF\r\ntext\r\nEOF\r\n")));
  BOOST_TEST(crlf.out == "text\r\n");
}

BOOST_FIXTURE_TEST_CASE(no_command_at_all_is_an_invalid_argument, exec_rig) {
  auto box = create();
  for (const auto& argv : {std::vector<std::string>{}, std::vector<std::string>{""}}) {
    auto e = refusal(box.exec(exec_spec{argv}));
    BOOST_TEST((e.code == errc::invalid_argument));
    BOOST_TEST(e.message.find("argv") != std::string::npos, e.message);
  }
}

BOOST_FIXTURE_TEST_CASE(input_of_64_MiB_arrives_whole_also_at_a_reader_that_sleeps, exec_rig) {
  auto box = create();
  const auto bytes = many_bytes(64 << 20);
  const auto digest = sha256_hex(bytes);
  exec_spec spec{{"sha256sum"}};
  spec.stdin_bytes = bytes;
  BOOST_TEST(value(box.exec(spec)).out.substr(0, 64) == digest);
  spec.argv = {"/bin/sh", "-c", "sleep 1; sha256sum"};
  BOOST_TEST(value(box.exec(spec)).out.substr(0, 64) == digest);
}

BOOST_FIXTURE_TEST_CASE(a_reader_that_stops_early_ends_with_its_own_code, exec_rig) {
  auto box = create();
  for (auto* script : {"exit 3", "head -c 10 > /dev/null; exit 3", "exec <&-; sleep 0.2; exit 3"}) {
    auto spec = exec_spec::shell(script);
    spec.stdin_bytes = std::string(64 << 20, 'x');
    auto x = value(box.exec(spec));
    BOOST_TEST((x.outcome.kind == outcome_kind::exited), script);
    BOOST_TEST(x.outcome.code == 3, script);
  }
  // A source without an end is left alone once nobody can read it.
  auto source = std::make_shared<endless_input>();
  auto spec = exec_spec::shell("head -c 200000 > /dev/null; exit 4");
  spec.stdin_bytes = "";
  BOOST_TEST(value(box.start(spec, source).result()).outcome.code == 4);
  BOOST_TEST(value(box.exec(exec_spec{{"true"}})).ok());
  auto asked = source->asked();
  BOOST_TEST(asked >= 4u);
  BOOST_TEST(value(box.exec(exec_spec{{"sleep", "0.2"}})).ok());
  BOOST_TEST(source->asked() == asked);
}

BOOST_FIXTURE_TEST_CASE(what_is_too_long_for_the_kernel_is_refused_with_the_limit, exec_rig) {
  auto box = create();
  auto refused = [&](const exec_spec& spec, const std::string& limit) {
    auto e = refusal(box.exec(spec));
    BOOST_TEST((e.code == errc::invalid_argument), e.message);
    BOOST_TEST(e.message.find(limit) != std::string::npos, e.message);
  };
  refused(exec_spec{{"true", std::string(200 << 10, 'x')}}, "131071");
  refused(exec_spec::shell(std::string(3 << 20, '#')), "131071");
  exec_spec surroundings{{"true"}};
  for (int i = 0; i < 50; ++i)
    surroundings.env.emplace_back(fmt::format("V{}", i), std::string(100 << 10, 'x'));
  refused(surroundings, "2097152");
  // Short strings, but more pointers to them than fit.
  exec_spec pointers{{"true"}};
  pointers.argv.resize(300'000, "xy");
  refused(pointers, "2 MiB");
  // The longest that one may be, often.
  exec_spec longest{{"/bin/sh", "-c", "echo ${#1} $#", "sh"}};
  for (int i = 0; i < 15; ++i)
    longest.argv.push_back(std::string(131'071, 'x'));
  for (int i = 0; i < 5; ++i)
    BOOST_TEST(value(box.exec(longest)).out == "131071 15\n");
}

BOOST_FIXTURE_TEST_CASE(a_script_of_3_MiB_runs_from_standard_input_and_from_a_file, exec_rig) {
  auto box = create();
  std::string script;
  while (script.size() < 3 << 20)
    script += "# " + std::string(1000, 'x') + "\n";
  script += "echo ran\n";
  exec_spec from_input{{"/bin/sh"}};
  from_input.stdin_bytes = script;
  BOOST_TEST(value(box.exec(from_input)).out == "ran\n");
  done(box.write("/room/script", "#!/bin/sh\n" + script, {0755}));
  BOOST_TEST(value(box.exec(exec_spec{{"/room/script"}})).out == "ran\n");
}

BOOST_FIXTURE_TEST_CASE(a_command_has_exactly_the_variables_of_its_own_call, exec_rig) {
  auto from = at.environment();
  from.env = {{"BASE", "base"}};
  auto box = create(from);
  auto variables = [&](std::vector<std::pair<std::string, std::string>> env) {
    exec_spec spec{{"/bin/busybox", "env"}};
    spec.env = std::move(env);
    return value(box.exec(spec)).out;
  };
  const std::string rest =
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\nHOME=/root\nBASE=base\n";
  BOOST_TEST(variables({{"A", "1"}, {"B", "2"}}) == rest + "A=1\nB=2\n");
  BOOST_TEST(variables({{"B", "3"}}) == rest + "B=3\n");
  BOOST_TEST(variables({}) == rest);
  BOOST_TEST(variables({{"B", ""}}) == rest + "B=\n");
}

BOOST_AUTO_TEST_SUITE_END()
