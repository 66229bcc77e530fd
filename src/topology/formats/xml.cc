#include "src/topology/formats/xml.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "src/base/read_number.h"
#include "src/topology/plain_text.h"
#include "src/topology/tree.h"

namespace tutti {
namespace {

std::size_t line_at(std::string_view text, std::ptrdiff_t offset) {
  if (offset < 0) return 0;
  const auto end = text.begin() + std::min<std::ptrdiff_t>(offset, static_cast<std::ptrdiff_t>(text.size()));
  return static_cast<std::size_t>(std::count(text.begin(), end, '\n')) + 1;
}

std::string quoted(const char* attribute, std::string_view text) {
  return std::string(attribute) + "=\"" + std::string(beginning_of(text, 64)) + "\"";
}

}  // namespace

Result<Xml> Xml::parse(std::string_view text, const std::string& origin) {
  if (text.size() > kMaxTopologyBytes)
    return invalid_argument(origin + ": longer than " + std::to_string(kMaxTopologyBytes >> 20) + " MiB");
  const std::size_t good = plain_lines_until(text);
  if (good < text.size())
    return invalid_argument(origin + ":" + std::to_string(line_at(text, static_cast<std::ptrdiff_t>(good))) +
                            ": not XML: invalid UTF-8");
  Xml xml(text, origin);
  xml.document_ = std::make_unique<pugi::xml_document>();
  const pugi::xml_parse_result parsed =
      xml.document_->load_buffer(text.data(), text.size(), pugi::parse_minimal | pugi::parse_escapes | pugi::parse_eol);
  if (!parsed)
    return invalid_argument(origin + ":" + std::to_string(line_at(text, parsed.offset)) +
                            ": not XML: " + parsed.description());
  return xml;
}

Status Xml::error_at(const pugi::xml_node& at, const std::string& what) const {
  return invalid_argument(origin_ + ":" + std::to_string(line_at(text_, at.offset_debug())) + ": <" + at.name() +
                          ">: " + what);
}

Result<std::string> Xml::bus_id(const pugi::xml_node& at, const char* attribute) const {
  const std::string_view text = at.attribute(attribute).value();
  std::string id = normal_bus_id(text);
  if (!is_bus_id(id)) return error_at(at, quoted(attribute, text) + " is not a bus id such as 0000:a4:00.0");
  return id;
}

Result<double> Xml::number(const pugi::xml_node& at, const char* attribute, double otherwise, double max) const {
  const std::string_view text = at.attribute(attribute).value();
  if (text.empty()) return otherwise;
  double value = 0;
  if (!read_number(text, value) || !std::isfinite(value) || value < 0)
    return error_at(at, quoted(attribute, text) + " is not a number >= 0");
  if (value > max) return error_at(at, quoted(attribute, text) + " is more than " + std::to_string(std::llround(max)));
  return value;
}

Result<std::uint64_t> Xml::whole(const pugi::xml_node& at, const char* attribute, std::uint64_t otherwise,
                                 std::uint64_t max) const {
  const std::string_view text = at.attribute(attribute).value();
  if (text.empty()) return otherwise;
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  const std::string_view digits = hexadecimal ? text.substr(2) : text;
  std::uint64_t value = 0;
  if (!read_number(digits, value, hexadecimal ? 16 : 10))
    return error_at(at, quoted(attribute, text) + " is not an integer >= 0");
  if (value > max) return error_at(at, quoted(attribute, text) + " is more than " + std::to_string(max));
  return value;
}

}  // namespace tutti
