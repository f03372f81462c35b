#include "tests/fuzz/messages.hpp"

namespace dsec::fuzz {

namespace {

std::uint64_t number_of(input& in) {
  static const std::uint64_t edges[] = {0,        1,        2,          3,          9,
                                        64,       65,       255,        256,        1000,
                                        65535,    65536,    1 << 20,    (8 << 20),  (8 << 20) + 1,
                                        1u << 31, ~0u,      1ull << 32, 1ull << 62, 1ull << 63,
                                        ~0ull,    ~0ull - 1};
  constexpr std::size_t count = sizeof edges / sizeof *edges;
  const auto which = in.byte();
  if (which < count)
    return edges[which];
  // Mostly few numbers, so that what is named once is named again.
  return which < 32 ? in.number<std::uint64_t>() : which & 7;
}

std::string bytes_of(input& in) {
  static const char* const words[] = {"",        "/",     "/a",    "/a/b",    "/etc/passwd",
                                      "a",       "..",    "/../x", "sh",      "-c",
                                      "PATH=/a", "root",  "agent", "1000:10", "agent:wheel",
                                      "/link",   "/fifo", "x=y"};
  constexpr std::size_t count = sizeof words / sizeof *words;
  const auto which = in.byte();
  if (which < 4 * count)
    return words[which % count];
  if (which < 250)
    return in.text();
  return std::string(in.number<std::uint16_t>() * 4, 'x');
}

capnp::DynamicValue::Reader plain(capnp::Type type, input& in) {
  switch (type.which()) {
  case capnp::schema::Type::VOID:
    return capnp::VOID;
  case capnp::schema::Type::BOOL:
    return in.flag();
  case capnp::schema::Type::INT8:
    return static_cast<std::int8_t>(number_of(in));
  case capnp::schema::Type::INT16:
    return static_cast<std::int16_t>(number_of(in));
  case capnp::schema::Type::INT32:
    return static_cast<std::int32_t>(number_of(in));
  case capnp::schema::Type::INT64:
    return static_cast<std::int64_t>(number_of(in));
  case capnp::schema::Type::UINT8:
    return static_cast<std::uint8_t>(number_of(in));
  case capnp::schema::Type::UINT16:
    return static_cast<std::uint16_t>(number_of(in));
  case capnp::schema::Type::UINT32:
    return static_cast<std::uint32_t>(number_of(in));
  case capnp::schema::Type::UINT64:
    return number_of(in);
  case capnp::schema::Type::ENUM:
    return capnp::DynamicEnum{type.asEnum(), static_cast<std::uint16_t>(number_of(in))};
  default:
    return nullptr;
  }
}

capnp::Data::Reader data_of(const std::string& bytes) {
  return {reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()};
}

unsigned length_of(input& in) {
  const auto n = in.byte();
  return n < 250 ? n % 5 : n;
}

void fill_list(capnp::DynamicList::Builder to, input& in, const capability_source& capabilities,
               int depth) {
  const auto type = to.getSchema().getElementType();
  for (unsigned i = 0; i < to.size(); ++i)
    switch (type.which()) {
    case capnp::schema::Type::TEXT: {
      const auto text = bytes_of(in);
      to.set(i, capnp::Text::Reader{text.c_str(), text.size()});
      break;
    }
    case capnp::schema::Type::DATA: {
      const auto bytes = bytes_of(in);
      to.set(i, data_of(bytes));
      break;
    }
    case capnp::schema::Type::STRUCT:
      fill(to[i].as<capnp::DynamicStruct>(), in, capabilities, depth - 1);
      break;
    case capnp::schema::Type::LIST:
    case capnp::schema::Type::INTERFACE:
    case capnp::schema::Type::ANY_POINTER:
      break;
    default:
      to.set(i, plain(type, in));
    }
}

void fill_field(capnp::DynamicStruct::Builder to, capnp::StructSchema::Field field, input& in,
                const capability_source& capabilities, int depth) {
  if (field.getProto().isGroup())
    return fill(to.init(field).as<capnp::DynamicStruct>(), in, capabilities, depth);
  const auto type = field.getType();
  switch (type.which()) {
  case capnp::schema::Type::TEXT: {
    const auto text = bytes_of(in);
    to.set(field, capnp::Text::Reader{text.c_str(), text.size()});
    break;
  }
  case capnp::schema::Type::DATA: {
    const auto bytes = bytes_of(in);
    to.set(field, data_of(bytes));
    break;
  }
  case capnp::schema::Type::LIST:
    fill_list(to.init(field, length_of(in)).as<capnp::DynamicList>(), in, capabilities, depth);
    break;
  case capnp::schema::Type::STRUCT:
    fill(to.init(field).as<capnp::DynamicStruct>(), in, capabilities, depth - 1);
    break;
  case capnp::schema::Type::INTERFACE:
    KJ_IF_MAYBE (given, capabilities(type.asInterface(), in)) {
      to.set(field, *given);
    }
    break;
  case capnp::schema::Type::ANY_POINTER:
    break;
  default:
    to.set(field, plain(type, in));
  }
}

} // namespace

void fill(capnp::DynamicStruct::Builder to, input& in, const capability_source& capabilities,
          int depth) {
  if (depth <= 0)
    return;
  const auto schema = to.getSchema();
  for (auto field : schema.getNonUnionFields())
    // Now and then a field stays as it is.
    if (in.byte() % 16 != 15)
      fill_field(to, field, in, capabilities, depth);
  if (const auto choices = schema.getUnionFields(); choices.size() > 0)
    fill_field(to, choices[static_cast<unsigned>(in.below(choices.size()))], in, capabilities,
               depth);
}

} // namespace dsec::fuzz
