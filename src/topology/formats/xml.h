// An XML document whose complaints name the line.
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
  // Entities and document types are not looked at.
  static Result<Xml> parse(std::string_view text, const std::string& origin);

  pugi::xml_node root() const { return document_->document_element(); }
  // "<origin>:<line>: <what>".
  Status complain(const pugi::xml_node& at, const std::string& what) const;

  // The attribute as the normal form of an address on PCI; a complaint if it is none.
  Result<std::string> bus_id(const pugi::xml_node& at, const char* attribute) const;
  // The attribute as a number: `otherwise` if it is not there or empty; a complaint if it is none, or not within.
  Result<double> number(const pugi::xml_node& at, const char* attribute, double otherwise, double most) const;
  // A whole one, decimal or behind 0x hexadecimal.
  Result<std::uint64_t> whole(const pugi::xml_node& at, const char* attribute, std::uint64_t otherwise,
                              std::uint64_t most) const;

 private:
  Xml(std::string_view text, std::string origin) : text_(text), origin_(std::move(origin)) {}

  std::string_view text_;  // The caller's.
  std::string origin_;
  std::unique_ptr<pugi::xml_document> document_;
};

}  // namespace tutti
