#include "perf/rounding/request.h"

#include <string>

#include "algorithms/catalogue.h"
#include "src/base/read_number.h"

namespace tutti::rounding {
namespace {

constexpr DataType kTypes[] = {DataType::float32, DataType::float16, DataType::bfloat16};

std::vector<std::string_view> split(std::string_view list) {
  std::vector<std::string_view> words;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    words.push_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return words;
}

Result<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t number = 0;
  if (read_number(text, number) && number > 0) return number;
  return invalid_argument("'" + std::string(text) + "' is not an integer above 0");
}

Result<DataType> parse_type(std::string_view text) {
  for (const DataType type : kTypes) {
    if (text == name(type)) return type;
  }
  return invalid_argument("'" + std::string(text) +
                          "' is not a type that can be compressed; valid: float32, float16, bfloat16");
}

Result<CompressionFormat> parse_format(std::string_view text) {
  const CompressionFormat format = TUTTI_TRY(parse_compression(text));
  if (format == CompressionFormat::none)
    return invalid_argument("no compression takes place in the format '" + std::string(text) + "'");
  return format;
}

Result<const Algorithm*> parse_algorithm(Collective collective, std::string_view text) {
  const Algorithm* algorithm = find(collective, text);
  if (algorithm == nullptr || accesses_peers(algorithm->name()))
    return invalid_argument("'" + std::string(text) + "' is not an algorithm of " + name(collective) +
                            " that sends messages; valid: " + names_of(collective));
  return algorithm;
}

template <typename T, typename Parse>
Status read_list(std::string_view list, std::vector<T>& values, Parse&& parse) {
  values.clear();
  for (const std::string_view word : split(list)) values.push_back(static_cast<T>(TUTTI_TRY(parse(word))));
  return {};
}

Status read_option(std::string_view option, std::string_view value, Request& request) {
  const auto algorithm = [&](std::string_view text) { return parse_algorithm(request.collective, text); };
  if (option == "--data") return read_list(value, request.data, parse_data);
  if (option == "--types") return read_list(value, request.types, parse_type);
  if (option == "--formats") return read_list(value, request.formats, parse_format);
  if (option == "--algorithms") return read_list(value, request.algorithms, algorithm);
  if (option == "--ranks") return read_list(value, request.ranks, parse_number);
  if (option == "--collective") request.collective = TUTTI_TRY(parse_collective(value));
  else if (option == "--elements") request.elements = TUTTI_TRY(parse_number(value));
  else if (option == "--seed") request.seed = TUTTI_TRY(parse_number(value));
  else return invalid_argument("unknown option " + std::string(option));
  return {};
}

void complete(Request& request) {
  if (request.data.empty()) {
    for (std::uint32_t i = 0; i < kDataKinds; ++i) request.data.push_back(static_cast<Data>(i));
  }
  if (request.types.empty()) request.types.assign(std::begin(kTypes), std::end(kTypes));
  if (request.formats.empty()) {
    for (std::uint32_t i = 1; i < kCompressionFormats; ++i)
      request.formats.push_back(static_cast<CompressionFormat>(i));
  }
  if (request.ranks.empty()) request.ranks.push_back(8);
  if (!request.algorithms.empty()) return;
  const Problem any = {.collective = request.collective, .ranks = 4, .groups = {}};
  for (const Algorithm* algorithm : catalogue(request.collective)) {
    if (!accesses_peers(algorithm->name()) && algorithm->supports_compression(any))
      request.algorithms.push_back(algorithm);
  }
}

}  // namespace

Result<Request> parse_request(int count, char** arguments) {
  Request request;
  for (int i = 1; i < count; i += 2) {
    if (i + 1 == count) return invalid_argument("option " + std::string(arguments[i]) + " has no value");
    TUTTI_CHECK_OK(read_option(arguments[i], arguments[i + 1], request));
  }
  complete(request);
  return request;
}

}  // namespace tutti::rounding
