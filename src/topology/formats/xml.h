// An XML document with error messages that contain the line number.
#pragma once

#include <cstdint>
#include <memory>
#include <pugixml.hpp>
#include <string>
#include <string_view>

#include "src/base/status.h"
#include "src/topology/formats.h"

namespace tutti {

class Xml {
 public:
  // Does not process entity declarations and document types. `text` must outlive the result.
  static Result<Xml> parse(std::string_view text, const std::string& origin);

  pugi::xml_node root() const { return document_->document_element(); }
  // Returns invalid_argument with "<origin>:<line>: <what>".
  Status error_at(const pugi::xml_node& at, const std::string& what) const;

  // Returns the attribute as a normalised PCI address; fails if it is malformed.
  Result<std::string> bus_id(const pugi::xml_node& at, const char* attribute) const;
  // Returns the attribute as a number, or `otherwise` if it is absent or empty. Fails unless it is between 0 and
  // `max`.
  Result<double> number(const pugi::xml_node& at, const char* attribute, double otherwise, double max) const;
  // Same contract as number(), for integers: decimal, or hexadecimal after 0x.
  Result<std::uint64_t> whole(const pugi::xml_node& at, const char* attribute, std::uint64_t otherwise,
                              std::uint64_t max) const;

 private:
  Xml(std::string_view text, std::string origin) : text_(text), origin_(std::move(origin)) {}

  std::string_view text_;  // Owned by the caller.
  std::string origin_;
  std::unique_ptr<pugi::xml_document> document_;
};

}  // namespace tutti
